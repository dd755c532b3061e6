/** A store that writes a settlement at once and answers late: the dispatcher may meet the message again before it knows. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { OutboxStore } from '../../../../test/world/outbox.ts'
import { reused } from '../../../../test/world/reused-store.ts'
import { stores } from '../../../../test/world/stores.ts'
import { silentLog } from '../../../core/log.ts'
import { TestClock } from '../../../core/test-clock.ts'
import type { Database } from '../../../store/database.ts'
import { openDatabase } from '../../../store/open.ts'
import { parseStoreUrl } from '../../../store/store-url.ts'
import { OutboxMeter } from '../served/meter.ts'
import { readTable } from '../sql/table.ts'
import { Dispatcher } from './dispatcher.ts'
import { dispatcherSettings } from './options.ts'

/** The database, but settlements are answered only once `answered` resolves. */
const answeringLate = (db: Database, answered: Promise<void>): Database => ({
  ...db,
  dialect: db.dialect,
  transaction: (verb, work) => db.transaction(verb, work),
  session: (verb, work) => db.session(verb, work),
  listen: (channel, wake) => db.listen(channel, wake),
  statement: async (verb, work) => {
    const written = await db.statement(verb, work)
    if (verb === 'outbox.settle') await answered
    return written
  },
})

describe.each(stores)('settlements that are answered late, on $name', (kind) => {
  const places = reused(kind)

  it('let no message overtake the one before it in its line', async () => {
    const outbox = await OutboxStore.open(places)
    const db = openDatabase(outbox.url, { poolSize: 3 })
    const clock = new TestClock()
    clock.freeze(clock.now())
    const answered = Promise.withResolvers<void>()
    const delivered: string[] = []
    let failsFirst = true
    const dispatcher = new Dispatcher({
      ...{ name: 'outbox', store: parseStoreUrl(outbox.url), clock, log: silentLog },
      ...{ db: answeringLate(db, answered.promise), table: () => readTable(db, {}) },
      settings: dispatcherSettings({ baseRetryDelaySeconds: 1, jitter: 0, pollIntervalSeconds: 3_600 }),
      meter: new OutboxMeter(clock),
      transport: {
        name: 'test',
        async deliver({ payload }) {
          if (failsFirst) {
            failsFirst = false
            throw new Error('not yet')
          }
          delivered.push(Buffer.from(payload).toString())
        },
      },
    })
    onTestFinished(async () => {
      answered.resolve()
      await dispatcher.stop()
      await db.close()
      await outbox.close()
    })
    await outbox.insert({ payload: 'a1', line: 'a' })
    await dispatcher.start()
    const count = async (where: string) =>
      Number((await outbox.query(`SELECT count(*) AS n FROM outbox_messages WHERE ${where}`))[0]?.n)
    await expect.poll(() => count('retry_count = 1')).toBe(1)
    await outbox.insert({ payload: 'a2', line: 'a' })
    clock.advance(1_000_000n)
    dispatcher.wake()
    // Both are claimed once more while the answer is still out.
    await expect.poll(() => count('claimed_by IS NOT NULL')).toBe(2)
    expect(delivered).toEqual([])
    answered.resolve()
    await expect.poll(() => count('processed_at IS NOT NULL')).toBe(2)
    expect(delivered).toEqual(['a1', 'a2'])
  })
})
