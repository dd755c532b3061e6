import { afterEach, describe, expect, it } from 'vitest'
import { MINUTE, SECOND, signalled, WorkBench } from '../../../test/world/engine-at-work.ts'
import { type StoreKind, stores } from '../../../test/world/stores.ts'
import { PermanentError } from '../../core/thrown.ts'
import { PRESETS } from '../../queues/engines/engine-directory.ts'
import { ENGINE_CONTEXTS } from '../../queues/engines/settings.ts'
import type { RunContext } from './options.ts'
import { LeaseLost } from './run.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const text = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString())

describe.each(stores)('an engine on $name', (kind: StoreKind) => {
  let bench: WorkBench
  afterEach(() => bench.close())

  const hmac = { name: 'hmac', operation: 'rotate' }

  it('records a run that succeeds, with its input and output, and removes the message', async () => {
    bench = await WorkBench.open(kind)
    await bench.start({
      ...hmac,
      instanceId: (message) => message.instanceId,
      handler: async (_message, ctx) => {
        bench.clock.advance(1_500_000n)
        return { rotated: true, attempt: ctx.attempt }
      },
    })
    await bench.send('hmac', { instanceId: 'eu-1', correlationId: 'c-1' })
    const [entry] = await bench.recorded('hmac', 1)
    expect(entry).toMatchObject({
      engine: 'hmac',
      operation: 'rotate',
      status: 'Succeeded',
      instanceId: 'eu-1',
      correlationId: 'c-1',
      durationMs: 1_500,
      error: null,
      actor: expect.stringMatching(/^hmac@/),
    })
    expect(text(entry?.input ?? null)).toBe('{"instanceId":"eu-1","correlationId":"c-1"}')
    expect(text(entry?.output ?? null)).toBe('{"rotated":true,"attempt":1}')
    expect(await bench.left('hmac')).toBe(0)
    expect(await bench.letters('hmac')).toEqual([])
  })

  it('tries a message that fails again, later each time, and makes it a letter at the last', async () => {
    bench = await WorkBench.open(kind)
    const attempts: number[] = []
    await bench.start({
      ...hmac,
      maxAttempts: 3,
      backoff: { base: '10s', factor: 2, max: '10m', jitter: 0 },
      handler: (_message, ctx) => {
        attempts.push(ctx.attempt)
        throw new RangeError(`no key in attempt ${ctx.attempt}`)
      },
    })
    await bench.send('hmac', { n: 1 })
    await bench.recorded('hmac', 1)
    await bench.advance(9n * SECOND)
    expect(await bench.entries('hmac')).toHaveLength(1)
    await bench.advance(2n * SECOND)
    await bench.recorded('hmac', 2)
    await bench.advance(19n * SECOND)
    expect(await bench.entries('hmac')).toHaveLength(2)
    await bench.advance(2n * SECOND)
    const entries = await bench.recorded('hmac', 3)
    expect(attempts).toEqual([1, 2, 3])
    const correlationId = entries[0]?.correlationId
    expect(correlationId).toMatch(UUID)
    for (const [i, entry] of entries.entries()) {
      expect(entry).toMatchObject({
        operation: 'rotate',
        status: 'Failed',
        correlationId,
        instanceId: 'publisher',
      })
      expect(entry.error).toContain(`no key in attempt ${i + 1}`)
    }
    const [letter, ...others] = await bench.letters('hmac')
    expect(others).toEqual([])
    expect(letter).toMatchObject({
      status: 'Pending',
      instanceId: 'publisher',
      correlationId,
      originalQueue: 'hmac-rotation-queue',
      errorClass: 'RangeError',
      errorMessage: 'no key in attempt 3',
      dequeueCount: 3,
    })
    expect(letter?.errorStack).toContain('engine.test')
    expect(text(letter?.payload ?? null)).toBe('{"n":1}')
    expect(await bench.left('hmac')).toBe(0)
  })

  it('makes a message a letter at once when its handler says that trying again is useless', async () => {
    bench = await WorkBench.open(kind)
    await bench.start({
      ...hmac,
      maxAttempts: 10,
      handler: () => {
        throw new PermanentError('the instance is gone')
      },
    })
    await bench.send('hmac', { n: 1 })
    expect(await bench.recorded('hmac', 1)).toMatchObject([{ status: 'Failed', operation: 'rotate' }])
    expect(await bench.letters('hmac')).toMatchObject([
      { errorClass: 'PermanentError', errorMessage: 'the instance is gone', dequeueCount: 1 },
    ])
    expect(await bench.left('hmac')).toBe(0)
  })

  it.each([
    ['no JSON', Buffer.from('{"a":'), /^the message is not JSON; /],
    ['no UTF-8', Buffer.of(0xff, 0x00, 0xfe), 'the message is not JSON; it is not UTF-8'],
    ['empty', Buffer.alloc(0), 'the message is not JSON; it is empty'],
  ])('makes a message that is %s a letter with its bytes, and never runs it', async (_, payload, message) => {
    bench = await WorkBench.open(kind)
    let runs = 0
    await bench.start({ ...hmac, handler: () => runs++ })
    await bench.send('hmac', payload)
    await bench.recorded('hmac', 1)
    const [letter] = await bench.letters('hmac')
    expect(letter?.errorClass).toBe('UnparsableMessage')
    expect(letter?.errorMessage).toMatch(message)
    expect(Buffer.from(letter?.payload ?? [])).toEqual(payload)
    expect(runs).toBe(0)
  })

  it('gives up a handler that does not return in time, and ignores what it returns later', async () => {
    bench = await WorkBench.open(kind)
    const late = signalled<string>()
    const began = signalled<RunContext>()
    await bench.start({
      ...hmac,
      maxAttempts: 1,
      concurrency: 1,
      timeout: '2m',
      handler: (message, ctx) => {
        if (message.n === 2) return 'second'
        began.resolve(ctx)
        return late.promise
      },
    })
    await bench.send('hmac', { n: 1 })
    const { signal } = await began.promise
    for (let i = 0; i < 13; i++) await bench.advance(10n * SECOND)
    await bench.recorded('hmac', 1)
    expect(signal.aborted).toBe(true)
    expect(await bench.letters('hmac')).toMatchObject([
      { errorClass: 'HandlerTimedOut', errorMessage: 'the handler did not return within 2m' },
    ])
    late.resolve('too late')
    await bench.send('hmac', { n: 2 })
    const entries = await bench.recorded('hmac', 2)
    expect(entries.map(({ status }) => status)).toEqual(['Failed', 'Succeeded'])
  })

  it('keeps the lease of a handler that takes long', async () => {
    bench = await WorkBench.open(kind)
    const end = signalled()
    const began = signalled()
    let runs = 0
    await bench.start({
      ...hmac,
      timeout: '1h',
      handler: async () => {
        runs += 1
        began.resolve()
        await end.promise
      },
    })
    await bench.send('hmac', { n: 1 })
    await began.promise
    // Five leases long; a renewal is under way whenever the clock stops.
    for (let i = 0; i < 30; i++) await bench.advance(10n * SECOND)
    end.resolve()
    expect(await bench.recorded('hmac', 1)).toMatchObject([{ status: 'Succeeded', durationMs: 300_000 }])
    expect(runs).toBe(1)
  })

  it('ends a run whose message was taken away', async () => {
    bench = await WorkBench.open(kind)
    const began = signalled<RunContext>()
    const ended = signalled<unknown>()
    await bench.start({
      ...hmac,
      timeout: '1h',
      handler: (_message, ctx) => {
        began.resolve(ctx)
        ctx.signal.addEventListener('abort', () => ended.resolve(ctx.signal.reason))
        return ended.promise
      },
    })
    await bench.send('hmac', { n: 1 })
    const ctx = await began.promise
    await ctx.extendLease()
    await bench.office.queues.clear({ queueName: bench.queueOf('hmac'), queue: true, destructive: true })
    await bench.advance(30n * SECOND)
    expect(await ended.promise).toBeInstanceOf(LeaseLost)
    await expect(ctx.extendLease()).rejects.toThrow(LeaseLost)
    expect(await bench.entries('hmac')).toEqual([])
  })

  it('takes over what a crashed worker had', async () => {
    bench = await WorkBench.open(kind)
    const attempts: number[] = []
    const options = { ...hmac, handler: (_: unknown, ctx: RunContext) => attempts.push(ctx.attempt) }
    await bench.start(options).then((engine) => engine.stop())
    await bench.send('hmac', { n: 1 })
    await bench.office.queues.lease({ queueName: bench.queueOf('hmac'), clientId: 'crashing', batchSize: 1 })
    await bench.start(options)
    await bench.advance(2n * MINUTE)
    expect(await bench.recorded('hmac', 1)).toMatchObject([{ status: 'Succeeded' }])
    expect(attempts).toEqual([2])
  })

  it('does not run a message that took all its workers with it', async () => {
    bench = await WorkBench.open(kind)
    let runs = 0
    const options = { ...hmac, maxAttempts: 2, handler: () => runs++ }
    await bench.start(options).then((engine) => engine.stop())
    await bench.send('hmac', { n: 1, correlationId: 'c-1' })
    for (let crash = 1; crash <= 2; crash++) {
      await bench.office.queues.lease({
        queueName: bench.queueOf('hmac'),
        clientId: 'crashing',
        batchSize: 1,
      })
      await bench.advance(2n * MINUTE)
    }
    await bench.start(options)
    await bench.recorded('hmac', 1)
    const [letter] = await bench.letters('hmac')
    expect(letter).toMatchObject({ errorClass: 'DeliveredTooOften', dequeueCount: 3, correlationId: 'c-1' })
    expect(letter?.errorMessage).toContain('was delivered 3 times and may be attempted 2 times')
    expect(runs).toBe(0)
  })

  it('runs no more handlers at a time than it may', async () => {
    bench = await WorkBench.open(kind)
    let running = 0
    let most = 0
    await bench.start({
      ...hmac,
      concurrency: 3,
      handler: async () => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
      },
    })
    await bench.send('hmac', ...Array.from({ length: 40 }, (_, n) => ({ n })))
    await bench.recorded('hmac', 40)
    expect(most).toBe(3)
    expect(await bench.left('hmac')).toBe(0)
  })

  it('waits for running handlers when it stops', async () => {
    bench = await WorkBench.open(kind)
    const began = signalled()
    const end = signalled()
    const engine = await bench.start({
      ...hmac,
      handler: async () => {
        began.resolve()
        await end.promise
      },
    })
    await bench.send('hmac', { n: 1 })
    await began.promise
    const stopped = engine.stop()
    await bench.send('hmac', { n: 2 })
    end.resolve()
    await stopped
    expect(await bench.entries('hmac')).toMatchObject([{ status: 'Succeeded' }])
    expect(await bench.left('hmac')).toBe(1)
    await expect(engine.start()).rejects.toThrow("engine 'hmac' was stopped")
  })

  it('gives back what is not finished in time, for others to have at once', async () => {
    bench = await WorkBench.open(kind)
    const began = signalled<RunContext>()
    const engine = await bench.start({
      ...hmac,
      handler: (_message, ctx) => {
        began.resolve(ctx)
        return new Promise(() => {})
      },
    })
    await bench.send('hmac', { n: 1 })
    const { signal } = await began.promise
    const stopped = engine.stop({ timeoutMs: 5_000 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(signal.aborted).toBe(false)
    const moving = setInterval(() => bench.clock.advance(SECOND), 1)
    await stopped
    clearInterval(moving)
    expect(signal.aborted).toBe(true)
    expect(await bench.entries('hmac')).toEqual([])
    await bench.start({ ...hmac, handler: () => 'by another' })
    const [entry] = await bench.recorded('hmac', 1)
    expect(text(entry?.output ?? null)).toBe('"by another"')
  })

  it('writes the result of a run once the store takes it again', async () => {
    bench = await WorkBench.open(kind)
    const began = signalled()
    const end = signalled()
    await bench.start({
      ...hmac,
      handler: async () => {
        began.resolve()
        await end.promise
      },
    })
    await bench.send('hmac', { n: 1 })
    await began.promise
    await bench.store.refuseWrites()
    end.resolve()
    const tries = () => bench.logged.filter(({ message }) => message.includes('trying again')).length
    for (let before = 0; before < 3; before = tries()) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      bench.clock.advance(SECOND)
    }
    await bench.store.acceptWrites()
    const moving = setInterval(() => bench.clock.advance(SECOND), 5)
    try {
      expect(await bench.recorded('hmac', 1)).toMatchObject([{ status: 'Succeeded' }])
    } finally {
      clearInterval(moving)
    }
    expect(await bench.left('hmac')).toBe(0)
  })

  it('confirms or reopens the letter whose message it gets again, under the same correlation id', async () => {
    bench = await WorkBench.open(kind)
    let fails = true
    await bench.start({
      ...hmac,
      maxAttempts: 1,
      handler: () => {
        if (fails) throw new Error('no key')
      },
    })
    await bench.send('hmac', { n: 1 })
    await bench.recorded('hmac', 1)
    const [letter] = await bench.letters('hmac')
    const key = { engine: 'hmac', rowKey: letter?.rowKey ?? '' }
    const retry = { edit: null, notes: null, actor: 'ops' }

    await bench.office.letters.retry(key, retry)
    await bench.recorded('hmac', 3)
    expect((await bench.office.letters.get(key)).letter).toMatchObject({ status: 'Pending', dequeueCount: 2 })

    fails = false
    await bench.office.letters.retry(key, retry)
    const entries = await bench.recorded('hmac', 5)
    const { letter: confirmed, failures } = await bench.office.letters.get(key)
    expect(confirmed).toMatchObject({ status: 'Resolved', confirmedAt: expect.anything() })
    expect(failures).toHaveLength(2)
    expect(new Set(entries.map(({ correlationId }) => correlationId))).toEqual(
      new Set([letter?.correlationId]),
    )
    expect(entries.map(({ operation }) => operation)).toEqual([
      'rotate',
      'retry',
      'rotate',
      'retry',
      'rotate',
    ])
  })

  it('keeps odd results and odd failures', async () => {
    bench = await WorkBench.open(kind)
    const circle: { self?: unknown } = {}
    circle.self = circle
    const outcomes: Record<string, () => unknown> = {
      nothing: () => undefined,
      circle: () => circle,
      bigint: () => 10n,
      large: () => 'x'.repeat(2_000_000),
      string: () => Promise.reject('just a text'),
      null: () => Promise.reject(null),
      object: () => Promise.reject({ code: 7 }),
      nul: () => Promise.reject(new Error('a\0b\ud800')),
    }
    await bench.start({ ...hmac, maxAttempts: 1, handler: (message) => outcomes[String(message.kind)]?.() })
    const kinds = Object.keys(outcomes)
    await bench.send('hmac', ...kinds.map((outcome) => ({ kind: outcome, correlationId: outcome })))
    const entries = await bench.recorded('hmac', kinds.length)
    const of = (kind: string) => entries.find(({ correlationId }) => correlationId === kind)
    expect(of('nothing')).toMatchObject({ status: 'Succeeded', output: null })
    for (const odd of ['circle', 'bigint', 'large']) {
      expect(of(odd)?.status).toBe('Succeeded')
      expect(text(of(odd)?.output ?? null)).toMatch(/^\{"note":"the output /)
    }
    expect(of('string')).toMatchObject({ status: 'Failed', error: 'just a text' })
    expect(of('null')).toMatchObject({ status: 'Failed', error: 'null' })
    expect(of('object')).toMatchObject({ status: 'Failed', error: '{ code: 7 }' })
    expect(of('nul')).toMatchObject({ status: 'Failed', error: 'a\ufffdb\ufffd' })
  })

  it('takes an instance id that can be stored, whatever the message says', async () => {
    bench = await WorkBench.open(kind)
    await bench.start({ ...hmac, instanceId: (message) => message.instanceId, handler: () => null })
    const given = ['ok', 7, '', '\0', 'a\0b', 'x'.repeat(300), { no: 1 }, null]
    await bench.send('hmac', ...given.map((instanceId, i) => ({ instanceId, correlationId: `c-${i}` })))
    await bench.send('hmac', Buffer.from('null'))
    const entries = await bench.recorded('hmac', given.length + 1)
    const of = (i: number) => entries.find(({ correlationId }) => correlationId === `c-${i}`)?.instanceId
    expect(given.map((_, i) => of(i))).toEqual([
      'ok',
      '7',
      'publisher',
      'publisher',
      'ab',
      'x'.repeat(256),
      'publisher',
      'publisher',
    ])
    expect(entries.every(({ status }) => status === 'Succeeded')).toBe(true)
  })

  it('makes its queue anew when somebody deletes it', async () => {
    bench = await WorkBench.open(kind)
    await bench.start({ ...hmac, handler: () => null })
    const queueName = bench.queueOf('hmac')
    await bench.office.queues.delete({ queueName, force: true })
    const moving = setInterval(() => bench.clock.advance(SECOND), 5)
    try {
      await expect.poll(() => bench.office.queues.info(queueName).catch(() => null)).not.toBeNull()
      await bench.send('hmac', { n: 1 })
      await bench.recorded('hmac', 1)
    } finally {
      clearInterval(moving)
    }
  })
})

describe.each(stores)('the presets on $name', (kind: StoreKind) => {
  it.each(ENGINE_CONTEXTS)('of %s run end to end, every operation of every engine', async (context) => {
    const bench = await WorkBench.open(kind, { context })
    try {
      for (const [name, { queue, operations }] of Object.entries(PRESETS[context])) {
        for (const [i, operation] of operations.entries()) {
          const options = {
            name,
            operation,
            maxAttempts: 1,
            handler: ({ fail }: { fail?: unknown }) => {
              if (fail === true) throw new Error('as told')
            },
          }
          if (queue === null) {
            expect(() => bench.make(options)).toThrow(
              `engine option name: '${name}' is not allowed; allowed: an engine with a queue`,
            )
            continue
          }
          const engine = await bench.start(options)
          await bench.send(name, { fail: false }, { fail: true })
          const entries = await bench.recorded(name, 2 * (i + 1))
          const latest = entries.filter((entry) => entry.operation === operation)
          expect(latest.map(({ status }) => status).sort()).toEqual(['Failed', 'Succeeded'])
          expect(await bench.letters(name)).toHaveLength(i + 1)
          await engine.stop()
        }
      }
    } finally {
      await bench.close()
    }
  })
})
