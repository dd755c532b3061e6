import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PLAIN, RedriveOffice } from '../../test/harness/redrive-office.ts'
import { reused } from '../../test/harness/reused-store.ts'
import { stores } from '../../test/harness/stores.ts'
import type { BartlebyError } from '../core/errors.ts'
import type { RedriveDetail } from './redrive.ts'

const codeOf = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => 'done',
    (error: BartlebyError) => error.code ?? String(error),
  )

const names = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `n${from + i}`)

function addsUp({ counts }: RedriveDetail): void {
  const { planned, sent, skipped, failed, remaining, confirmed, returned, unconfirmed } = counts
  expect(sent + skipped + failed + remaining).toBe(planned)
  expect(confirmed + returned + unconfirmed).toBe(sent)
}

describe.each(stores)('redrives on $name', (kind) => {
  const store = reused(kind)
  let desk: RedriveOffice
  beforeEach(async () => {
    desk = await RedriveOffice.open(store)
    await desk.createQueue('orders')
  })
  afterEach(() => desk?.close())
  const read = (id: RedriveDetail['id']) => desk.office.redrives.read(id)

  it('plans without changing anything, and sends back in the order of capture', async () => {
    await desk.dead('orders', names(1, 5))
    const plan = await desk.plan()
    expect(plan.state).toBe('planned')
    expect(plan.numbers).toMatchObject({ matched: 5, eligible: 5, inFlight: 0, invalid: 0 })
    expect(plan.counts).toMatchObject({ planned: 5, sent: 0, remaining: 5 })
    expect(plan.sample.map(({ outgoing }) => Buffer.from(outgoing?.payload ?? []).toString())).toEqual(
      names(1, 5),
    )
    expect(await desk.work('orders')).toEqual([])

    await desk.office.redrives.start(plan.id, 'nell')
    await desk.office.redrives.settle()
    const sent = await read(plan.id)
    expect(sent.state).toBe('done')
    expect(sent.counts).toMatchObject({ sent: 5, remaining: 0, unconfirmed: 5 })
    expect(await desk.work('orders', (payload) => payload !== 'n2')).toEqual(names(1, 5))
    const done = await read(plan.id)
    expect(done.counts).toMatchObject({ confirmed: 4, returned: 1, unconfirmed: 0 })
    addsUp(done)
    const { items } = await desk.office.redrives.members(plan.id, { limit: 10, token: null, outcome: null })
    expect(items.map(({ outcome }) => outcome)).toEqual([
      'confirmed',
      'returned',
      'confirmed',
      'confirmed',
      'confirmed',
    ])
  })

  it('starts a plan once, and only while it is valid', async () => {
    await desk.dead('orders', names(1, 2))
    const [one, other] = [await desk.plan(), await desk.plan()]
    const starts = await Promise.all([
      codeOf(desk.office.redrives.start(one.id, 'nell')),
      codeOf(desk.office.redrives.start(one.id, 'bob')),
    ])
    expect(starts.sort()).toEqual(['done', 'redrive_started'])
    await desk.office.advanceClock(31n * 60_000_000n)
    expect(await codeOf(desk.office.redrives.start(other.id, 'bob'))).toBe('redrive_plan_expired')
    const nothing = await desk.plan({ selection: { by: 'filter', filter: { originalQueue: 'nowhere' } } })
    expect(nothing.counts.planned).toBe(0)
    expect(await codeOf(desk.office.redrives.start(nothing.id, 'bob'))).toBe('redrive_empty')
  })

  it('sends a letter that is in two redrives once', async () => {
    await desk.dead('orders', names(1, 4))
    const slow = await desk.run({ terms: { ...PLAIN, rate: 1 } })
    const later = await desk.plan()
    expect(later.numbers).toMatchObject({ eligible: 0, inFlight: 4 })
    await desk.office.redrives.cancel(slow.id, 'nell', null)
    const [a, b] = [await desk.plan({ terms: { ...PLAIN, rate: 1 } }), await desk.plan()]
    await desk.office.redrives.start(a.id, 'nell')
    await desk.office.redrives.start(b.id, 'bob')
    await desk.office.redrives.settle()
    const left = await read(b.id)
    expect(left.state).toBe('done')
    expect(left.exceptions).toEqual([{ outcome: 'skipped', reason: 'in_other_redrive', letters: 4 }])
    for (let i = 0; i < 8; i++) await desk.office.advanceClock(500_000n)
    expect((await read(a.id)).counts.sent).toBe(4)
    expect(await desk.work('orders')).toEqual(names(1, 4))
  })

  it('tries a few first, and stops when they come back', async () => {
    await desk.dead('orders', names(1, 20))
    const canary = { letters: 3, confirmPercent: 100, waitSeconds: 60 }
    const bad = await desk.run({ terms: { ...PLAIN, canary } })
    expect(bad).toMatchObject({ state: 'canary', counts: { sent: 3, remaining: 17 } })
    await desk.work('orders', () => false)
    await desk.office.advanceClock(1_000_000n)
    const stopped = await read(bad.id)
    expect(stopped).toMatchObject({ state: 'stopped', counts: { sent: 3, returned: 3, remaining: 17 } })
    expect(stopped.note).toContain('3 came back')

    const good = await desk.run({ terms: { ...PLAIN, canary } })
    await desk.work('orders')
    await desk.office.advanceClock(1_000_000n)
    expect(await read(good.id)).toMatchObject({ state: 'done', counts: { sent: 20 } })
  })

  it('pauses when nothing is heard of its canary, and waits anew when it is resumed', async () => {
    await desk.dead('orders', names(1, 4))
    const canary = { letters: 2, confirmPercent: 50, waitSeconds: 60 }
    const { id } = await desk.run({ terms: { ...PLAIN, canary } })
    await desk.office.advanceClock(61_000_000n)
    const paused = await read(id)
    expect(paused.state).toBe('paused')
    expect(paused.note).toContain('nothing was heard')
    await desk.office.redrives.resume(id, 'nell')
    await desk.office.redrives.settle()
    expect((await read(id)).state).toBe('canary')
    await desk.work('orders')
    await desk.office.advanceClock(1_000_000n)
    expect((await read(id)).state).toBe('done')
  })

  it('halts by its stop rule', async () => {
    await desk.dead('orders', names(1, 40))
    const terms = { ...PLAIN, rate: 10, stopRule: { percent: 20, of: 10 } }
    const { id } = await desk.run({ terms })
    for (let i = 0; i < 10; i++) {
      await desk.office.advanceClock(200_000n)
      await desk.work('orders', () => false)
    }
    await desk.office.advanceClock(300_000n)
    const stopped = await read(id)
    expect(stopped.state).toBe('stopped')
    expect(stopped.counts.sent).toBeLessThan(15)
    addsUp(stopped)
  })

  it('keeps its rate to each destination, at two percent over ten seconds', async () => {
    await desk.createQueue('mails')
    await desk.dead('orders', names(1, 3))
    for (let i = 0; i < 150; i++)
      await desk.reported(i % 3 === 0 ? 'mails' : 'orders', { instanceId: `i${i}` })
    const { id } = await desk.run({ terms: { ...PLAIN, rate: 5 } })
    for (let i = 0; i < 100; i++) await desk.office.advanceClock(100_000n)
    const { destinations } = await read(id)
    for (const name of ['orders', 'mails']) {
      const sent = destinations.filter((each) => each.name === name).reduce((sum, each) => sum + each.sent, 0)
      expect(sent, name).toBeGreaterThanOrEqual(49)
      expect(sent, name).toBeLessThanOrEqual(51)
    }
  })

  it('pauses, resumes, changes its rate and is cancelled, and says so in history', async () => {
    await desk.dead('orders', names(1, 6))
    const { id } = await desk.run({ terms: { ...PLAIN, rate: 1 } })
    await desk.office.advanceClock(2_100_000n)
    await desk.office.redrives.pause(id, 'bob', 'lunch')
    await desk.office.advanceClock(10_000_000n)
    const paused = await read(id)
    expect(paused).toMatchObject({ state: 'paused', note: 'lunch' })
    const { sent } = paused.counts
    await desk.office.redrives.setRate(id, null, 'bob')
    await desk.office.redrives.resume(id, 'bob')
    await desk.office.redrives.settle()
    expect(sent).toBeLessThan(6)
    expect(await read(id)).toMatchObject({ state: 'done', counts: { sent: 6 } })
    expect(await codeOf(desk.office.redrives.cancel(id, 'bob', null))).toBe('redrive_state_wrong')
    const { items } = await desk.office.history.list({ correlationId: id }, { limit: 20 })
    expect(items.map(({ operation }) => operation).reverse()).toEqual([
      'redrive.start',
      'redrive.pause',
      'redrive.rate',
      'redrive.resume',
      'redrive.finish',
    ])
  })

  it('pauses when its queue is gone, and loses nothing', async () => {
    await desk.createQueue('mails')
    for (let i = 0; i < 6; i++) await desk.reported('mails')
    const { id } = await desk.run({ terms: { ...PLAIN, rate: 1 } })
    await desk.office.advanceClock(1_100_000n)
    await desk.work('mails')
    const before = (await read(id)).counts.sent
    await desk.office.queues.delete({ queueName: 'mails', force: true })
    await desk.office.advanceClock(1_100_000n)
    const paused = await read(id)
    expect(paused.state).toBe('paused')
    expect(paused.note).toContain("'mails' does not exist")
    expect(paused.counts.sent).toBe(before)
    await desk.office.queues.create({
      queueName: 'mails',
      leaseTimeout: '1h',
      expireTimeout: '240h',
      requestedPartitions: 1,
    })
    await desk.office.redrives.resume(id, 'nell')
    for (let i = 0; i < 12; i++) await desk.office.advanceClock(500_000n)
    expect(await read(id)).toMatchObject({ state: 'done', counts: { sent: 6, remaining: 0 } })
  })

  it('holds letters back behind an earlier one of their key that is not in it', async () => {
    await desk.reported('orders', { instanceId: 'a', errorClass: 'Other', errorMessage: 'something else' })
    for (let i = 0; i < 3; i++) await desk.reported('orders', { instanceId: 'a' })
    for (let i = 0; i < 3; i++) await desk.reported('orders', { instanceId: 'b' })
    const { items } = await desk.office.letters.list({ instanceId: 'b' }, {})
    const signature = items[0]?.signature
    const selection = { by: 'filter', filter: { signature } } as const
    expect((await desk.plan({ selection })).numbers).toMatchObject({ eligible: 3, orderBlocked: 3 })
    const anyhow = await desk.plan({ selection, terms: { ...PLAIN, order: 'none' } })
    expect(anyhow.numbers).toMatchObject({ eligible: 6, orderBlocked: 0 })
    expect((await desk.plan()).numbers).toMatchObject({ eligible: 7, orderBlocked: 0 })
  })

  it('discards many with a reason, and restores them', async () => {
    await desk.dead('orders', names(1, 3))
    const discarded = await desk.run({ action: 'discard', reason: 'test data' })
    expect(discarded).toMatchObject({ state: 'done', counts: { sent: 3, confirmed: 3 } })
    expect((await desk.office.letters.ledger.total({ status: 'Pending' })).total).toBe(0)
    const restored = await desk.run({ action: 'restore' })
    expect(restored).toMatchObject({ state: 'done', counts: { sent: 3 } })
    expect((await desk.office.letters.ledger.total({ status: 'Pending' })).total).toBe(3)
  })

  it('moves letters to another queue', async () => {
    await desk.createQueue('mails')
    await desk.dead('orders', names(1, 3))
    expect(await codeOf(desk.plan({ action: 'move', queue: 'nowhere' }))).toBe('parameter_invalid')
    const moved = await desk.run({ action: 'move', queue: 'mails' })
    expect(moved.counts.sent).toBe(3)
    expect(await desk.work('mails')).toEqual(names(1, 3))
    expect((await read(moved.id)).counts.confirmed).toBe(3)
  })

  it('is gone on with by another server', async () => {
    await desk.dead('orders', names(1, 6))
    const other = await desk.another()
    try {
      const { id } = await desk.run({ terms: { ...PLAIN, rate: 1 } })
      await desk.office.advanceClock(2_000_000n)
      await desk.office.drain()
      for (let i = 0; i < 20; i++) await other.advanceClock(500_000n)
      const done = await other.redrives.read(id)
      expect(done).toMatchObject({ state: 'done', counts: { sent: 6 } })
      expect(done.resumed).toBeGreaterThan(0)
    } finally {
      await other.close()
    }
  })
})
