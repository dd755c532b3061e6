/** Acts on dead jobs that are cut short by a crash, at every step that they have: all of an act is done then, or nothing. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Xid } from '../../../src/core/xid.ts'
import { readLetterCounts } from '../../../src/letters/numbers/counts.ts'
import { readCounts } from '../../../src/sources/webhooks/numbers/counts.ts'
import type { Channel, Consumer } from '../../../src/sources/webhooks/webhook.ts'
import type { Webhooks } from '../../../src/sources/webhooks/webhooks.ts'
import type { Database } from '../../../src/store/database.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { Crash, CrashPoint, intercepted } from '../../world/intercepted-database.ts'
import { stores } from '../../world/stores.ts'
import { CountedOffice, expectExact, unfoldedIn } from '../../world/webhooks/office.ts'

/** More steps than any act has. */
const MOST_STEPS = 80
/** Behind this a run is left alone by the server that was at it. */
const RUN_LEFT_US = 4_000_000n

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe.each(stores)('dead jobs on $name, when a server crashes', (store) => {
  let house: CountedOffice
  let db: Database
  let names = 0
  beforeAll(async () => {
    house = await CountedOffice.open(store)
    db = openDatabase(house.place.url, { poolSize: 2 })
    // It must not take up what the servers of these tests leave behind.
    await house.office.runs.stop()
  })
  afterAll(async () => {
    await db?.close()
    await house?.close()
  })

  const receiver = async (): Promise<readonly [Channel, Consumer]> => {
    const channel = await house.channel(`channel ${++names}`)
    return [channel, await house.consumer(channel, 'k')]
  }
  const jobsOf = async ({ channelId }: Channel): Promise<number> =>
    (await expectExact(house.db)).find((sheet) => sheet.channelId === channelId)?.jobs ?? -1

  /** All books, row by row. */
  const books = () =>
    house.db.snapshot('test', async (session) => ({
      letters: (await readLetterCounts(session)).sort((a, b) => a.drawer - b.drawer || a.status - b.status),
      counts: await readCounts(session),
      deltas: await unfoldedIn(session),
    }))

  /** Does an act again and again, each time with a crash one step further, until one goes through. Gives the steps it has. */
  const crashEverywhere = async (
    channel: Channel,
    after: number,
    act: (webhooks: Webhooks) => Promise<void>,
    unchanged = async () => {},
  ) => {
    let crash = new CrashPoint(1)
    // The same server all along: what it remembers must not be what was rolled back.
    const webhooks = house.webhooksOn(intercepted(db, (step) => crash.intercept(step)))
    const before = await jobsOf(channel)
    for (let step = 1; step < MOST_STEPS; step++) {
      crash = new CrashPoint(step)
      const failed = await act(webhooks).then(
        () => null,
        (error: unknown) => error,
      )
      if (failed !== null && !(failed instanceof Crash)) throw failed
      const found = await jobsOf(channel)
      if (found === after) return step
      expect([failed, found]).toEqual([expect.any(Crash), before])
      await unchanged()
    }
    return expect.fail('the act has no end')
  }

  // H25
  it('are no more than before when their death is rolled back', async () => {
    const [channel, consumer] = await receiver()
    const job = await house.job(channel, consumer)
    const before = await books()
    const die = ({ jobs }: Webhooks) => jobs.move(consumer, job, 'DEAD', 0)
    const steps = await crashEverywhere(channel, 1, die, async () => expect(await books()).toEqual(before))
    expect(steps).toBeGreaterThan(5)
    await house.expectDead(channel, consumer, 1)
  })

  // H11
  const ACTS: readonly [string, (webhooks: Webhooks, consumer: Consumer, job: Xid) => Promise<void>][] = [
    ['deleted', ({ jobs }, consumer, job) => jobs.erase(consumer, job)],
    ['requeued', ({ jobs }, consumer, job) => jobs.requeue(consumer, job)],
    ['taken by their consumer', ({ jobs }, consumer, job) => jobs.move(consumer, job, 'INFLIGHT', 0)],
  ]
  it.each(ACTS)('are %s together with their count, or not at all', async (_, act) => {
    const [channel, consumer] = await receiver()
    await house.dead(channel, consumer)
    const job = await house.dead(channel, consumer)
    const steps = await crashEverywhere(channel, 1, (webhooks) => act(webhooks, consumer, job))
    expect(steps).toBeGreaterThan(5)
    await house.expectDead(channel, consumer, 1)
  })

  // H22
  const BULK: readonly [string, 'purge' | 'requeueAll'][] = [
    ['purged', 'purge'],
    ['requeued', 'requeueAll'],
  ]
  it.each(BULK)('are %s in batches, and counted exactly behind each', async (_, kind) => {
    const [channel, consumer] = await receiver()
    for (let i = 0; i < 10; i++) await house.dead(channel, consumer)
    const left: number[] = []
    const watched = intercepted(db, async ({ verb, next }) => {
      if (verb === `run.webhook-${kind === 'purge' ? 'purge' : 'requeue'}` && next === 'committed')
        left.push(await jobsOf(channel))
    })
    const { bulk } = house.webhooksOn(watched)
    await bulk[kind](consumer, 'the test')
    expect(left).toEqual([7, 4, 1, 0])
    await house.expectDead(channel, consumer, 0)
  })

  it.each(BULK)(
    'are %s to the end by other servers, and counted exactly wherever one crashed',
    async (_, kind) => {
      const [channel, consumer] = await receiver()
      for (let i = 0; i < 10; i++) await house.dead(channel, consumer)
      const run = async () =>
        (await house.office.webhooks.bulk.list(1)).find((each) => each.consumer === consumer.number)
      let crashes = 0
      for (let step = 1; (await run())?.finishedAt == null; step++) {
        if (step > MOST_STEPS) expect.fail('the run has no end')
        const crash = new CrashPoint(step)
        const { runs, webhooks } = house.serverOn(intercepted(db, crash.intercept))
        const call =
          (await run()) === undefined
            ? webhooks.bulk[kind](consumer, 'the test').catch(() => {})
            : void runs.start()
        while (!crash.hit && (await run())?.finishedAt == null) await turn()
        if (crash.hit) crashes++
        await turn()
        await jobsOf(channel)
        await runs.stop()
        await call
        await house.pass(RUN_LEFT_US)
      }
      expect(crashes).toBeGreaterThan(15)
      expect(await run()).toMatchObject({ done: 10, expected: 10 })
      await house.expectDead(channel, consumer, 0)
    },
  )

  it('left nothing behind that a check would find', () => house.expectVerified())
})
