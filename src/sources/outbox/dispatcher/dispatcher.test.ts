import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { OutboxStore } from '../../../../test/world/outbox.ts'
import { reused } from '../../../../test/world/reused-store.ts'
import { stores } from '../../../../test/world/stores.ts'
import type { Log } from '../../../core/log.ts'
import { TestClock } from '../../../core/test-clock.ts'
import { PermanentError } from '../../../core/thrown.ts'
import type { OutboxMessage } from '../table/message.ts'
import { RetryLater } from '../transports/transport.ts'
import { createDispatcher, type DispatcherOptions, type RunningDispatcher } from './create-dispatcher.ts'

const second = 1_000_000n

describe.each(stores)('a dispatcher on $name', (kind) => {
  const places = reused(kind)
  let outbox: OutboxStore
  let clock: TestClock
  let lines: string[]
  const running: RunningDispatcher[] = []
  const say = (_details: object, message: string) => void lines.push(message)
  const log: Log = { debug: say, info: say, warn: say, error: say }

  beforeEach(async () => {
    outbox = await OutboxStore.open(places)
    clock = new TestClock()
    clock.freeze(clock.now())
    lines = []
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((dispatcher) => dispatcher.stop()))
    await outbox.close()
  })

  const dispatcher = (
    transport: DispatcherOptions['transport'],
    options: Partial<DispatcherOptions> = {},
  ) => {
    const made = createDispatcher({ url: outbox.url, transport, clock, log, jitter: 0, ...options })
    running.push(made)
    return made
  }
  const texts = (messages: readonly OutboxMessage[]) =>
    messages.map(({ payload }) => Buffer.from(payload).toString())

  it('marks what was delivered as processed, and delivers it once', async () => {
    const id = await outbox.insert({ payload: 'one' })
    const got: OutboxMessage[] = []
    const each = dispatcher(async (message) => void got.push(message))
    await each.drain()
    await each.drain()
    expect(texts(got)).toEqual(['one'])
    const row = await outbox.row(id)
    expect(row.processed_at).not.toBeNull()
    expect(row).toMatchObject({
      error: null,
      retry_count: 0,
      claimed_by: null,
      claimed_until: null,
      claim_count: 0,
    })
    expect(got[0]).toMatchObject({ id, key: row.idempotency_key, tenantId: 't', eventType: 'created' })
  })

  it('tries again after the delays of its policy, clears the error on success, and stops after the last', async () => {
    const id = await outbox.insert()
    let attempts = 0
    const each = dispatcher(
      async () => {
        attempts++
        throw new Error('no luck')
      },
      { maxRetries: 2, baseRetryDelaySeconds: 10 },
    )
    await each.drain()
    expect(await outbox.row(id)).toMatchObject({
      retry_count: 1,
      error: 'Error: no luck',
      processed_at: null,
    })
    clock.advance(10n * second - 1n)
    await each.drain()
    expect(attempts).toBe(1)
    clock.advance(1n)
    await each.drain()
    expect(attempts).toBe(2)
    clock.advance(20n * second)
    await each.drain()
    expect(attempts).toBe(3)
    const row = await outbox.row(id)
    expect(row).toMatchObject({
      retry_count: 3,
      error: 'Error: no luck',
      processed_at: null,
      claimed_by: null,
    })
    expect(row.dead_at).not.toBeNull()
    expect(Boolean(row.letter_due)).toBe(true)
    clock.advance(100_000n * second)
    await each.drain()
    expect(attempts).toBe(3)
  })

  it('clears the error when a retry succeeds', async () => {
    const id = await outbox.insert()
    let fails = true
    const each = dispatcher(async () => {
      if (fails) throw new Error('not yet')
    })
    await each.drain()
    fails = false
    clock.advance(60n * second)
    await each.drain()
    const row = await outbox.row(id)
    expect(row).toMatchObject({ error: null, retry_count: 1 })
    expect(row.processed_at).not.toBeNull()
  })

  it('gives up at once what can never be delivered, and cuts long errors', async () => {
    const id = await outbox.insert()
    const each = dispatcher(
      async () => {
        throw new PermanentError(`${'x'.repeat(100)}\0`)
      },
      { maxErrorTextLength: 50 },
    )
    await each.drain()
    const row = await outbox.row(id)
    expect(row.dead_at).not.toBeNull()
    expect(row.error).toBe(`PermanentError: ${'x'.repeat(34)}`)
  })

  it('waits as long as the receiver asks', async () => {
    await outbox.insert()
    let attempts = 0
    const each = dispatcher(async () => {
      attempts++
      throw new RetryLater('busy', 120_000)
    })
    await each.drain()
    clock.advance(119n * second)
    await each.drain()
    expect(attempts).toBe(1)
    clock.advance(1n * second)
    await each.drain()
    expect(attempts).toBe(2)
  })

  it('says what it did, one line per event', async () => {
    const good = await outbox.insert({ payload: 'good' })
    const bad = await outbox.insert({ payload: 'bad' })
    const keyOf = async (id: string) => (await outbox.row(id)).idempotency_key
    await dispatcher(async ({ payload }) => {
      if (Buffer.from(payload).toString() === 'bad') throw new Error('no')
    }).drain()
    expect(lines.toSorted()).toEqual([
      `OUTBOX_WORKER_DISPATCH_FAIL id=${bad} key=${await keyOf(bad)} retry=1 max=5`,
      `OUTBOX_WORKER_DISPATCH_SUCCESS id=${good} key=${await keyOf(good)}`,
      'OUTBOX_WORKER_FETCH count=2',
    ])
  })

  it('counts repetitions in the log, and never more than there may be', async () => {
    await outbox.insert()
    const each = dispatcher(
      async () => {
        throw new Error('no')
      },
      { maxRetries: 2 },
    )
    for (let delivery = 1; delivery <= 4; delivery++) {
      await each.drain()
      clock.advance(3_600n * second)
    }
    const counted = lines.flatMap((line) => / (retry=.*)$/.exec(line)?.[1] ?? [])
    expect(counted).toEqual(['retry=1 max=2', 'retry=2 max=2', 'retry=2 max=2'])
  })

  it('delivers in the order of creation', async () => {
    for (let i = 0; i < 250; i++) await outbox.insert({ payload: String(i) })
    const got: OutboxMessage[] = []
    await dispatcher(async (message) => void got.push(message), { concurrency: 1, batchSize: 30 }).drain()
    expect(texts(got)).toEqual(Array.from({ length: 250 }, (_, i) => String(i)))
  })

  it('delivers a line one after the other, however long it is', async () => {
    for (let i = 0; i < 100; i++) await outbox.insert({ payload: String(i), line: 'a' })
    const got: OutboxMessage[] = []
    let at = 0
    let most = 0
    await dispatcher(
      async (message) => {
        most = Math.max(most, ++at)
        await new Promise(setImmediate)
        got.push(message)
        at--
      },
      { batchSize: 50 },
    ).drain()
    expect(most).toBe(1)
    expect(texts(got)).toEqual(Array.from({ length: 100 }, (_, i) => String(i)))
  })

  it('goes on, also by drains alone, with a line that somebody else left standing', async () => {
    const first = await outbox.insert({ payload: 'a1', line: 'a' })
    await outbox.insert({ payload: 'a2', line: 'a' })
    const refusing = dispatcher(() => Promise.reject(new Error('not now')), { baseRetryDelaySeconds: 3_600 })
    await refusing.drain()
    await outbox.query('DELETE FROM outbox_messages WHERE id = $1', Number(first))
    const got: OutboxMessage[] = []
    await dispatcher(async (message) => void got.push(message)).drain()
    expect(texts(got)).toEqual(['a2'])
  })

  it('holds back the later ones of a line while one waits for its retry, and nobody else', async () => {
    for (const payload of ['a1', 'a2', 'b1', 'a3', 'b2', 'free'])
      await outbox.insert({ payload, ...(payload === 'free' ? {} : { line: payload.slice(0, 1) }) })
    const got: OutboxMessage[] = []
    let fails = true
    const each = dispatcher(async (message) => {
      if (fails && Buffer.from(message.payload).toString() === 'a1') throw new Error('no')
      got.push(message)
    })
    await each.drain()
    expect(texts(got).toSorted()).toEqual(['b1', 'b2', 'free'])
    fails = false
    clock.advance(10n * second)
    await each.drain()
    expect(texts(got).slice(3)).toEqual(['a1', 'a2', 'a3'])
  })

  it.each(['hold', 'skip'] as const)(
    'with onDead %s a dead message holds its line, or does not',
    async (onDead) => {
      for (const payload of ['a1', 'a2', 'b1']) await outbox.insert({ payload, line: payload.slice(0, 1) })
      const got: OutboxMessage[] = []
      const each = dispatcher(
        async (message) => {
          if (Buffer.from(message.payload).toString() === 'a1') throw new PermanentError('never')
          got.push(message)
        },
        { onDead },
      )
      await each.drain()
      clock.advance(1_000n * second)
      await each.drain()
      expect(texts(got).toSorted()).toEqual(onDead === 'hold' ? ['b1'] : ['a2', 'b1'])
    },
  )

  it('delivers again, with the same key, what a dispatcher that vanished had claimed', async () => {
    const id = await outbox.insert()
    let letGo = (): void => {}
    const held = new Promise<void>((resolve) => {
      letGo = resolve
    })
    const never = dispatcher(() => held, { claimSeconds: 30, name: 'gone' })
    await never.start()
    await expect.poll(async () => (await outbox.row(id)).claimed_by).toMatch(/^gone-/)
    const key = (await outbox.row(id)).idempotency_key
    // As if the process had ended: nobody renews the claim.
    const got: OutboxMessage[] = []
    const others = new TestClock()
    others.freeze(clock.now())
    const other = dispatcher(async (message) => void got.push(message), { clock: others })
    await other.drain()
    expect(got).toEqual([])
    others.advance(30n * second)
    await other.drain()
    expect(got.map((message) => message.key)).toEqual([key])
    // Who stops waits for what is under way.
    letGo()
  })

  it('gives back a whole batch whose claims have lapsed, however large it is, and delivers it then', async () => {
    const numbers =
      kind.name === 'postgres'
        ? 'SELECT n FROM generate_series(1, 10000) AS n'
        : 'WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) SELECT n FROM numbers'
    await outbox.query(
      `INSERT INTO outbox_messages (tenant_id, event_type, payload)
       SELECT 't', 'created', CAST(CAST(n AS text) AS ${kind.name === 'postgres' ? 'bytea' : 'blob'}) FROM (${numbers}) AS given`,
    )
    const got: OutboxMessage[] = []
    const each = dispatcher(
      async (message) => {
        // As on a machine that slept: the claims are over before anybody could renew them.
        if (got.length === 0) clock.advance(60n * second)
        got.push(message)
      },
      { batchSize: 10_000, concurrency: 1, claimSeconds: 60, deliveryTimeoutSeconds: 600 },
    )
    await each.drain()
    expect(new Set(texts(got)).size).toBe(10_000)
    expect(got).toHaveLength(10_000)
    const left = await outbox.query(
      'SELECT id FROM outbox_messages WHERE processed_at IS NULL OR claim_count > 0',
    )
    expect(left).toEqual([])
  })

  it('gives up a message that was claimed again and again and never settled, and says so', async () => {
    const id = await outbox.insert()
    await outbox.query(
      `UPDATE outbox_messages SET claim_count = 4, claimed_by = 'gone', claimed_until = ${kind.name === 'postgres' ? 'now()' : '1'}`,
    )
    const got: OutboxMessage[] = []
    clock.advance(10n * second)
    await dispatcher(async (message) => void got.push(message), { maxRetries: 2 }).drain()
    expect(got).toEqual([])
    const row = await outbox.row(id)
    expect(row.dead_at).not.toBeNull()
    expect(row.error).toMatch(/^PoisonMessage: it was claimed 4 times/)
  })

  it('wakes at once when something is committed', async () => {
    const got: OutboxMessage[] = []
    const each = dispatcher(async (message) => void got.push(message))
    await each.start()
    await outbox.insert({ payload: 'quick' })
    if (kind.name === 'postgres') await outbox.query(`SELECT pg_notify($1, '')`, await channel())
    // The clock stands still: no poll finds it.
    await expect.poll(() => texts(got)).toEqual(['quick'])
  })

  const channel = async () => {
    const { nameTable } = await import('../table/table-names.ts')
    return nameTable({}).channel
  }

  it('refuses an empty name of a table instead of taking another one', () => {
    expect(() => dispatcher(async () => {}, { table: '' })).toThrow('option table is invalid; it is empty')
  })

  it('can be stopped more than once', async () => {
    const each = dispatcher(async () => {})
    await each.start()
    await Promise.all([each.stop(), each.stop()])
    await each.stop()
  })

  it('purges processed rows after their time, and keeps their keys', async () => {
    const id = await outbox.insert()
    const each = dispatcher(async () => {}, { retention: { processed: 7, keys: 30 } })
    await each.drain()
    clock.advance(7n * 86_400n * second + 1n)
    expect(await each.purge()).toEqual({ rows: 0, keys: 0 })
    expect(await outbox.query('SELECT message_id FROM outbox_messages_keys')).toEqual([{ message_id: id }])
    clock.advance(60n * second)
    expect(await each.purge()).toEqual({ rows: 1, keys: 0 })
    expect(await outbox.rows()).toEqual([])
    clock.advance(23n * 86_400n * second)
    expect(await each.purge()).toEqual({ rows: 0, keys: 1 })
  })

  it('purges all of many rows that were processed at the same moment', async () => {
    const numbers =
      kind.name === 'postgres'
        ? 'SELECT n FROM generate_series(1, 2500) AS n'
        : 'WITH RECURSIVE s(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM s WHERE n < 2500) SELECT n FROM s'
    const [blob, then] =
      kind.name === 'postgres' ? [`'\\x7b7d'::bytea`, `'2020-01-01'`] : [`x'7b7d'`, '1577836800000000']
    await outbox.query(
      `INSERT INTO outbox_messages (tenant_id, event_type, payload, processed_at) SELECT 't', 'old', ${blob}, ${then} FROM (${numbers}) AS s`,
    )
    const each = dispatcher(async () => {})
    await each.purge()
    clock.advance(60n * second)
    expect(await each.purge()).toMatchObject({ rows: 2500 })
  })
})
