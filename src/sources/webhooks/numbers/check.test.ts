import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { letterCounter } from '../../../letters/numbers/counts.ts'
import { type Statement, sql } from '../../../store/database.ts'
import { foldCounts } from '../../../store/fold.ts'
import { leasedLock } from '../../../store/lock.ts'
import { verifyStore } from '../../../verify/verify.ts'
import { type Consumer, JOB } from '../webhook.ts'
import { checkWebhooks } from './check.ts'
import { webhookCounter } from './counts.ts'
import { readDeadCounts } from './dead-counts.ts'

const plantDead = sql(
  'test.plantDead',
  'UPDATE bartleby.place_totals SET letters = letters + $1 WHERE status = 0',
)
const plantTally = sql(
  'test.plantTally',
  'UPDATE bartleby.webhook_totals SET amount = amount + $1 WHERE tally = $2',
)

/** What breaks a promise, and mends it again when it is done twice. */
const BREAKS: readonly (readonly [string, Statement, readonly string[]])[] = [
  [
    'a dead job without its letter',
    sql('test.swapLetter', 'UPDATE bartleby.webhook_jobs SET letter = -letter WHERE state = 4'),
    ['W1'],
  ],
  [
    'a pending letter without its dead job',
    sql('test.swapState', 'UPDATE bartleby.webhook_jobs SET state = 5 - state WHERE letter IS NOT NULL'),
    ['W1', 'W2'],
  ],
  [
    'a letter in a drawer of another consumer',
    sql(
      'test.swapConsumer',
      `UPDATE bartleby.webhook_consumers SET consumer_id =
         CASE consumer_id WHEN 'billing' THEN 'another' WHEN 'another' THEN 'billing' ELSE consumer_id END`,
    ),
    ['W1', 'W2'],
  ],
  [
    'a job outside of the range of its message',
    sql('test.swapRange', 'UPDATE bartleby.webhook_messages SET jobs = -jobs'),
    ['W3'],
  ],
]

describe.each(stores)('the check of webhook counts on $name', (store) => {
  let books: WebhookWorld
  let consumer: Consumer

  beforeAll(async () => {
    books = await WebhookWorld.open(store)
    const channel = await books.channel('orders')
    consumer = await books.consumer(channel, { consumerId: 'billing' })
    await books.consumer(channel, { consumerId: 'idle' })
    const jobs = await books.message(Array(4).fill(consumer), { state: JOB.inFlight })
    const [waiting, delivered, dead] = jobs
    if (!waiting || !delivered || !dead) throw new Error('no job')
    await books.move([waiting], JOB.later)
    await books.move([delivered], JOB.delivered)
    await books.die([dead])
    await books.message([], { channel, scheduledFor: books.clock.now(), isWaiting: true })
    await fold()
  })
  afterAll(() => books?.close())

  const fold = async () => {
    if (store.name === 'sqlite') return
    for (const each of [letterCounter, webhookCounter])
      await foldCounts(books.db, each, { clock: books.clock, owner: 'me' })
  }
  const check = (repair = false) => checkWebhooks(books.db, { clock: books.clock, repair })
  const change = (statement: Statement, ...values: (number | string)[]) =>
    books.db.session('test', (session) => session.run(statement, ...values))
  const deadCount = async () =>
    (await books.db.session('test', (session) => readDeadCounts(session)))[0]?.deadCount
  const broken = async () => {
    const { invariants } = await verifyStore(books.db, { clock: books.clock })
    return invariants.filter((each) => each.broken > 0).map(({ invariant }) => invariant)
  }

  it('is clean where nothing is wrong, and repairs nothing', async () => {
    const clean = { checked: 2, mismatches: [], tallies: [], repaired: false }
    expect(await check()).toEqual(clean)
    expect(await check(true)).toEqual(clean)
    expect(await broken()).toEqual([])
  })

  it('finds a dead count that is wrong, and puts it right while jobs go on dying', async () => {
    await change(plantDead, 3)
    const mismatch = { channelId: 'orders', consumerId: 'billing', counted: 4, actual: 1 }
    expect(await check()).toEqual({ checked: 2, mismatches: [mismatch], tallies: [], repaired: false })
    expect(await broken()).toContain('W2')
    const [report] = await Promise.all([check(true), books.deadJobs(consumer, 1)])
    expect(report).toMatchObject({ repaired: true })
    expect(await deadCount()).toBe(2)
    expect(await check()).toMatchObject({ mismatches: [], tallies: [], repaired: false })
  })

  it('finds and repairs the counts of other jobs and of messages', async () => {
    await fold()
    await change(plantTally, 2, 1)
    await change(plantTally, -1, 11)
    const { mismatches, tallies } = await check(true)
    expect(mismatches).toEqual([])
    expect(tallies).toEqual([
      { channelId: 'orders', consumerId: null, tally: 'dispatched', counted: 1, actual: 2 },
      { channelId: 'orders', consumerId: 'billing', tally: 'queued', counted: 3, actual: 1 },
    ])
    expect(await check()).toMatchObject({ mismatches: [], tallies: [] })
  })

  it('lets one repair at a time work', async () => {
    const other = leasedLock(books.db, books.clock, 'webhooks.repair', 'other')
    await other.take(60_000_000n)
    await expect(check(true)).rejects.toThrow('another repair is under way')
    expect(await check()).toMatchObject({ repaired: false })
    await other.drop()
    expect(await check(true)).toMatchObject({ repaired: false })
  })

  it.each(BREAKS)('%s is found by verify', async (_what, statement, invariants) => {
    await change(statement)
    expect(await broken()).toEqual(invariants)
    await change(statement)
    expect(await broken()).toEqual([])
  })
})
