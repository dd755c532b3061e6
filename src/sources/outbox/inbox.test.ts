import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Application, type AppTransaction, adapterFor } from '../../../test/world/application.ts'
import { stores } from '../../../test/world/stores.ts'
import { TestClock } from '../../core/test-clock.ts'
import { createInbox, type Inbox, type InboxOptions, inboxSchema } from './inbox.ts'

const DAY = 86_400_000_000n
const KEY = { consumer: 'mailer', key: 'k-1' }

describe.each(stores)('an inbox on $name', (kind) => {
  let app: Application
  let clock: TestClock
  let inbox: Inbox<AppTransaction>
  beforeAll(async () => {
    app = await Application.open(
      kind,
      `${inboxSchema(kind.name)} ${inboxSchema(kind.name)} CREATE TABLE mails (note TEXT);`,
    )
  })
  afterAll(() => app.close())
  beforeEach(async () => {
    await app.script('DELETE FROM inbox_keys; DELETE FROM mails')
    clock = new TestClock()
    clock.freeze(clock.now())
    inbox = createInbox({ adapter: adapterFor(kind), clock })
  })
  const mails = async () => (await app.rows('SELECT note FROM mails ORDER BY note')).map(({ note }) => note)
  const send = async (tx: AppTransaction, note = 'hello') => {
    await tx.run(`INSERT INTO mails (note) VALUES ('${note}')`, [])
    return note
  }
  const receive = (key = KEY) => app.transaction((tx) => inbox.once(tx, key, () => send(tx)))

  it('does the work of a message once', async () => {
    expect(await receive()).toEqual({ ran: true, result: 'hello' })
    expect(await receive()).toEqual({ ran: false })
    expect(await mails()).toEqual(['hello'])
  })

  it('does it once for each consumer and each key', async () => {
    await receive()
    expect(await receive({ ...KEY, consumer: 'printer' })).toMatchObject({ ran: true })
    expect(await receive({ ...KEY, key: 'k-2' })).toMatchObject({ ran: true })
    expect(await mails()).toHaveLength(3)
  })

  it('does it once when 16 deliveries come at the same time', async () => {
    const outcomes = await Promise.all(Array.from({ length: 16 }, () => receive()))
    expect(outcomes.filter(({ ran }) => ran)).toHaveLength(1)
    expect(await mails()).toEqual(['hello'])
  })

  it('does it again after a rollback, also when others were waiting', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        const tx = await app.begin()
        const { ran } = await inbox.once(tx, KEY, () => send(tx))
        if (at < 4) await tx.rollback()
        else await tx.commit()
        return ran && at >= 4
      }),
    )
    expect(outcomes.filter(Boolean)).toHaveLength(1)
    expect(await mails()).toEqual(['hello'])
  })

  it('records nothing when the work fails, even if the receiver commits', async () => {
    await app.transaction(async (tx) => {
      const failing = inbox.once(tx, KEY, () => Promise.reject(new Error('no paper')))
      await expect(failing).rejects.toThrow('no paper')
    })
    expect(await receive()).toMatchObject({ ran: true })
  })

  it('tells what went wrong with the work when the database has given up its transaction', async () => {
    const tx = await app.begin()
    const failing = inbox.once(tx, KEY, () => tx.run('INSERT INTO nowhere VALUES (1)', []))
    await expect(failing).rejects.toThrow(/nowhere/)
    await tx.rollback()
    expect(await receive()).toMatchObject({ ran: true })
  })

  it('forgets keys that are older than its window, the oldest first', async () => {
    for (const key of ['a', 'b', 'c']) {
      await receive({ consumer: 'mailer', key })
      clock.advance(DAY)
    }
    clock.advance(29n * DAY - 1n)
    const forget = (limit?: number) =>
      app.transaction((tx) => inbox.forget(tx, limit === undefined ? {} : { limit }))
    expect(await forget(1)).toBe(1)
    expect(await app.rows('SELECT key FROM inbox_keys ORDER BY key')).toEqual([{ key: 'b' }, { key: 'c' }])
    expect(await forget()).toBe(1)
    expect(await forget()).toBe(0)
    expect(await receive({ consumer: 'mailer', key: 'a' })).toMatchObject({ ran: true })
  })

  it('takes the time of the database when it has no clock', async () => {
    const timed = createInbox({ adapter: adapterFor(kind) })
    await app.transaction((tx) => timed.once(tx, KEY, () => 1))
    await app.transaction((tx) => timed.once(tx, { ...KEY, key: 'old' }, () => 1))
    await app.script(`UPDATE inbox_keys SET received_at = received_at - 31 * ${DAY} WHERE key = 'old'`)
    expect(await app.transaction((tx) => timed.forget(tx))).toBe(1)
    expect(await app.transaction((tx) => timed.once(tx, KEY, () => 1))).toEqual({ ran: false })
  })

  it.each([
    ['consumer', { consumer: '', key: 'k' }],
    ['key', { consumer: 'c', key: '' }],
    ['key', { consumer: 'c', key: '\0' }],
  ])('names what is wrong with a key: %s', async (field, key) => {
    const tx = await app.begin()
    await expect(inbox.once(tx, key, () => 1)).rejects.toThrow(`outbox message is invalid; ${field}`)
    await tx.rollback()
  })
})

describe('the options of an inbox', () => {
  const adapter = adapterFor({ name: 'sqlite', fresh: () => Promise.reject(new Error('not needed')) })

  it('refuse a window that is shorter than the dispatcher tries', () => {
    const dispatcher = {
      maxRetries: 50,
      baseRetryDelaySeconds: 3_600,
      useExponentialBackoff: false,
      jitter: 0,
    }
    expect(() => createInbox({ adapter, windowDays: 2, dispatcher })).toThrow(
      'option windowDays is invalid; 2 is shorter than the time over which the dispatcher tries again, 2.09 days',
    )
    expect(() => createInbox({ adapter, windowDays: 2.1, dispatcher })).not.toThrow()
    expect(() => createInbox({ adapter, windowDays: 0.001 })).toThrow(/windowDays/)
  })

  it.each<[string, object]>([
    ['adapter', { adapter: undefined }],
    ['windowDays', { windowDays: 0 }],
    ['windowDays', { windowDays: '30' }],
    ['table', { table: '' }],
    ['table', { table: 7 }],
    ['maxRetries', { dispatcher: { maxRetries: -1 } }],
    ['clock', { clock: {} }],
    ['window', { window: 30 }],
  ])('are named when they are wrong: %s', (option, wrong) => {
    // Wrong on purpose.
    const options = { adapter, ...wrong } as InboxOptions<AppTransaction>
    expect(() => createInbox(options)).toThrow(`option ${option} is invalid`)
  })
})
