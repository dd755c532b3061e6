import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PLAIN, RedriveOffice } from '../../test/world/redrive-office.ts'
import { stores } from '../../test/world/stores.ts'
import type { BartlebyError } from '../core/errors.ts'
import { Office } from '../office.ts'
import type { MemberOutcome, PlanRequest, RedriveDetail } from './redrive.ts'
import { parseRecipe } from './repair/recipe.ts'
import type { Members } from './rows/member-list.ts'

const codeOf = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => 'done',
    (error: BartlebyError) => error.code ?? String(error),
  )

const PAGE = { limit: 2, token: null, outcome: null } as const

const names = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `n${from + i}`)

function addsUp({ counts, destinations }: RedriveDetail): void {
  const { planned, sent, skipped, failed, remaining, confirmed, returned, unconfirmed } = counts
  expect(sent + skipped + failed + remaining).toBe(planned)
  expect(confirmed + returned + unconfirmed).toBe(sent)
  const all = (count: 'planned' | 'sent' | 'skipped' | 'failed') =>
    destinations.reduce((sum, each) => sum + each[count], 0)
  expect([all('planned'), all('sent'), all('skipped'), all('failed')]).toEqual([
    planned,
    sent,
    skipped,
    failed,
  ])
}

describe.each(stores)('redrives on $name', (kind) => {
  let desk: RedriveOffice
  beforeAll(async () => {
    desk = await RedriveOffice.open(kind)
  })
  afterAll(() => desk?.close())
  /** Each test has queues and letters of its own. */
  let orders: string
  let mails: string
  let tests = 0
  beforeEach(async () => {
    tests++
    orders = `orders-${tests}`
    mails = `mails-${tests}`
    await desk.createQueue(orders)
  })
  const of = (queue: string) => ({ by: 'filter', filter: { originalQueue: queue } }) as const
  const plan = (changes: Partial<PlanRequest> = {}) => desk.plan({ selection: of(orders), ...changes })
  const run = (changes: Partial<PlanRequest> = {}) => desk.run({ selection: of(orders), ...changes })
  const read = (id: RedriveDetail['id']) => desk.office.redrives.read(id)

  it('plans without changing anything, and sends back in the order of capture', async () => {
    await desk.dead(orders, names(1, 5))
    const planned = await plan()
    expect(planned.state).toBe('planned')
    expect(planned.numbers).toMatchObject({ matched: 5, eligible: 5, inFlight: 0, invalid: 0 })
    expect(planned.counts).toMatchObject({ planned: 5, sent: 0, remaining: 5 })
    expect(planned.sample.map(({ outgoing }) => Buffer.from(outgoing?.payload ?? []).toString())).toEqual(
      names(1, 5),
    )
    expect(await desk.work(orders)).toEqual([])

    await desk.office.redrives.start(planned.id, 'nell')
    await desk.office.redrives.settle()
    const sent = await read(planned.id)
    expect(sent.state).toBe('done')
    expect(sent.counts).toMatchObject({ sent: 5, remaining: 0, unconfirmed: 5 })
    expect(await desk.work(orders, (payload) => payload !== 'n2')).toEqual(names(1, 5))
    const done = await read(planned.id)
    expect(done.counts).toMatchObject({ confirmed: 4, returned: 1, unconfirmed: 0 })
    addsUp(done)
    const { items } = await desk.office.redrives.members(planned.id, {
      limit: 10,
      token: null,
      outcome: null,
    })
    expect(items.map(({ outcome }) => outcome)).toEqual([
      'confirmed',
      'returned',
      'confirmed',
      'confirmed',
      'confirmed',
    ])
  })

  it('starts a plan once, and only while it is valid', async () => {
    await desk.dead(orders, names(1, 2))
    const [one, other] = [await plan(), await plan()]
    const starts = await Promise.all([
      codeOf(desk.office.redrives.start(one.id, 'nell')),
      codeOf(desk.office.redrives.start(one.id, 'bob')),
    ])
    expect(starts.sort()).toEqual(['done', 'redrive_started'])
    await desk.office.advanceClock(31n * 60_000_000n)
    expect(await codeOf(desk.office.redrives.start(other.id, 'bob'))).toBe('redrive_plan_expired')
    const nothing = await plan({ selection: { by: 'filter', filter: { originalQueue: 'nowhere' } } })
    expect(nothing.counts.planned).toBe(0)
    expect(await codeOf(desk.office.redrives.start(nothing.id, 'bob'))).toBe('redrive_empty')
  })

  it('sends a letter that is in two redrives once', async () => {
    await desk.dead(orders, names(1, 4))
    const slow = await run({ terms: { ...PLAIN, rate: 1 } })
    const later = await plan()
    expect(later.numbers).toMatchObject({ eligible: 0, inFlight: 4 })
    await desk.office.redrives.cancel(slow.id, 'nell', null)
    const [a, b] = [await plan({ terms: { ...PLAIN, rate: 1 } }), await plan()]
    await desk.office.redrives.start(a.id, 'nell')
    await desk.office.redrives.start(b.id, 'bob')
    await desk.office.redrives.settle()
    const left = await read(b.id)
    expect(left.state).toBe('done')
    expect(left.exceptions).toEqual([{ outcome: 'skipped', reason: 'in_other_redrive', letters: 4 }])
    for (let i = 0; i < 8; i++) await desk.office.advanceClock(500_000n)
    expect((await read(a.id)).counts.sent).toBe(4)
    expect(await desk.work(orders)).toEqual(names(1, 4))
  })

  it('tries a few first, and stops when they come back', async () => {
    await desk.dead(orders, names(1, 20))
    const canary = { letters: 3, confirmPercent: 100, waitSeconds: 60 }
    const bad = await run({ terms: { ...PLAIN, canary } })
    expect(bad).toMatchObject({ state: 'canary', counts: { sent: 3, remaining: 17 } })
    await desk.work(orders, () => false)
    await desk.office.advanceClock(1_000_000n)
    const stopped = await read(bad.id)
    expect(stopped).toMatchObject({ state: 'stopped', counts: { sent: 3, returned: 3, remaining: 17 } })
    expect(stopped.note).toContain('3 came back')

    const good = await run({ terms: { ...PLAIN, canary } })
    await desk.work(orders)
    // Nothing waits for the clock: what the canary was heard of is looked at when somebody asks.
    await desk.office.redrives.settle()
    expect(await read(good.id)).toMatchObject({ state: 'done', counts: { sent: 20 } })
  })

  it('hears of letters whose failure is reported anew, also of those whose items were completed', async () => {
    const reports = names(1, 4).map((name) => ({ sourceId: `${orders}-${name}`, instanceId: orders }))
    for (const report of reports) await desk.reported(orders, report)
    const failAgain = async (report: (typeof reports)[number]) => {
      desk.clock.advance(1_000_000n)
      await desk.reported(orders, { ...report, errorMessage: 'failed again' })
    }
    const canary = { letters: 3, confirmPercent: 50, waitSeconds: 60 }
    const { id } = await run({ terms: { ...PLAIN, canary } })
    const [first, second] = reports
    if (first === undefined || second === undefined) throw new Error('there are no letters')
    await failAgain(first)
    expect((await read(id)).counts).toMatchObject({ sent: 3, returned: 1, unconfirmed: 2 })
    const { partition, items } = await desk.office.queues.lease({
      queueName: orders,
      clientId: 'worker',
      batchSize: 1,
      requestTimeout: '1s',
    })
    await desk.office.queues.complete({ queueName: orders, partition, ids: items.map((item) => item.id) })
    expect((await read(id)).counts).toMatchObject({ confirmed: 1, returned: 1, unconfirmed: 1 })
    await failAgain(second)
    await desk.office.advanceClock(1_000_000n)
    const stopped = await read(id)
    expect(stopped).toMatchObject({ state: 'stopped', counts: { confirmed: 0, returned: 2, unconfirmed: 1 } })
    addsUp(stopped)
    const members = await desk.office.redrives.members(id, { limit: 10, token: null, outcome: null })
    expect(members.items.slice(0, 3).map(({ outcome }) => outcome)).toEqual([
      'returned',
      'returned',
      'unconfirmed',
    ])
  })

  it('waits with its canary for letters of a key whose turn comes later, at another place', async () => {
    await desk.createQueue(mails)
    const report = (queue: string, name: string, key: string) =>
      desk.reported(queue, { sourceId: `${orders}-${name}`, instanceId: `${orders}-${key}` })
    const rowKeys = [
      await report(orders, 'first', 'one'),
      await report(orders, 'second', 'two'),
      await report(mails, 'third', 'two'),
    ]
    const canary = { letters: 3, confirmPercent: 50, waitSeconds: 60 }
    const { id } = await run({
      selection: { by: 'ids', ids: rowKeys.map((rowKey) => ({ engine: 'hmac', rowKey })) },
      terms: { ...PLAIN, rate: 0.5, canary },
    })
    const sentInTwoSeconds = async (): Promise<number> => {
      desk.clock.advance(2_000_000n)
      await desk.office.redrives.settle()
      return (await read(id)).counts.sent
    }
    expect(await sentInTwoSeconds()).toBe(1)
    expect(await sentInTwoSeconds()).toBe(3)
  })

  it('pauses when nothing is heard of its canary, and waits anew when it is resumed', async () => {
    await desk.dead(orders, names(1, 4))
    const canary = { letters: 2, confirmPercent: 50, waitSeconds: 60 }
    const { id } = await run({ terms: { ...PLAIN, canary } })
    await desk.office.advanceClock(61_000_000n)
    const paused = await read(id)
    expect(paused.state).toBe('paused')
    expect(paused.note).toContain('nothing was heard')
    await desk.office.redrives.resume(id, 'nell')
    await desk.office.redrives.settle()
    expect((await read(id)).state).toBe('canary')
    await desk.work(orders)
    await desk.office.advanceClock(1_000_000n)
    expect((await read(id)).state).toBe('done')
  })

  it('halts by its stop rule', async () => {
    await desk.dead(orders, names(1, 40))
    const terms = { ...PLAIN, rate: 10, stopRule: { percent: 20, of: 10 } }
    const { id } = await run({ terms })
    for (let i = 0; i < 10; i++) {
      await desk.office.advanceClock(200_000n)
      await desk.work(orders, () => false)
    }
    await desk.office.advanceClock(300_000n)
    const stopped = await read(id)
    expect(stopped.state).toBe('stopped')
    expect(stopped.counts.sent).toBeLessThan(15)
    addsUp(stopped)
  })

  it('keeps its rate to each destination, at two percent over ten seconds', async () => {
    await desk.createQueue(mails)
    const selection = { by: 'filter', filter: { fromDate: desk.clock.now() } } as const
    await desk.dead(orders, names(1, 3))
    for (let i = 0; i < 30; i++) {
      await desk.reported(mails, { instanceId: `mail ${i}` })
      if (i > 3) await desk.reported(orders, { instanceId: `order ${i}` })
    }
    const { id } = await run({ selection, terms: { ...PLAIN, rate: 2 } })
    for (let i = 0; i < 50; i++) await desk.office.advanceClock(200_000n)
    const { destinations } = await read(id)
    for (const name of [orders, mails]) {
      const sent = destinations.filter((each) => each.name === name).reduce((sum, each) => sum + each.sent, 0)
      expect(sent, name).toBe(20)
    }
  })

  it('is among runs with the counts that it has: a moment later while it goes on, at once when it is halted or over', async () => {
    await desk.dead(orders, names(1, 6))
    const { id } = await run({ terms: { ...PLAIN, rate: 1 } })
    const both = async () => {
      const { sent, skipped, failed } = (await read(id)).counts
      const told = await desk.office.runs.read(id)
      expect(told).toMatchObject({ done: sent, skipped, failed, expected: 6 })
      return sent
    }
    await desk.office.advanceClock(1_400_000n)
    const early = await both()
    await desk.office.advanceClock(1_000_000n)
    await desk.office.redrives.pause(id, 'bob', null)
    expect(await both()).toBeGreaterThan(early)
    await desk.office.redrives.setRate(id, null, 'bob')
    await desk.office.redrives.resume(id, 'bob')
    await desk.office.redrives.settle()
    expect(await both()).toBe(6)
  })

  it('pauses, resumes, changes its rate and is cancelled, and says so in history', async () => {
    await desk.dead(orders, names(1, 6))
    const { id } = await run({ terms: { ...PLAIN, rate: 1 } })
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
    await desk.createQueue(mails)
    for (let i = 0; i < 6; i++) await desk.reported(mails)
    const { id } = await run({ selection: of(mails), terms: { ...PLAIN, rate: 1 } })
    await desk.office.advanceClock(1_100_000n)
    await desk.work(mails)
    const before = (await read(id)).counts.sent
    await desk.office.queues.delete({ queueName: mails, force: true })
    await desk.office.advanceClock(1_100_000n)
    const paused = await read(id)
    expect(paused.state).toBe('paused')
    expect(paused.note).toContain(`'${mails}' does not exist`)
    expect(paused.counts.sent).toBe(before)
    await desk.office.queues.create({
      queueName: mails,
      leaseTimeout: '1h',
      expireTimeout: '240h',
      requestedPartitions: 1,
    })
    await desk.office.redrives.resume(id, 'nell')
    for (let i = 0; i < 12; i++) await desk.office.advanceClock(500_000n)
    expect(await read(id)).toMatchObject({ state: 'done', counts: { sent: 6, remaining: 0 } })
  })

  it('holds letters back behind an earlier one of their key that is not in it', async () => {
    await desk.reported(orders, { instanceId: 'a', errorClass: 'Other', errorMessage: 'something else' })
    for (let i = 0; i < 3; i++) await desk.reported(orders, { instanceId: 'a' })
    for (let i = 0; i < 3; i++) await desk.reported(orders, { instanceId: 'b' })
    const { items } = await desk.office.letters.list({ instanceId: 'b' }, {})
    const signature = items[0]?.signature
    const selection = { by: 'filter', filter: { originalQueue: orders, signature } } as const
    expect((await plan({ selection })).numbers).toMatchObject({ eligible: 3, orderBlocked: 3 })
    const anyhow = await plan({ selection, terms: { ...PLAIN, order: 'none' } })
    expect(anyhow.numbers).toMatchObject({ eligible: 6, orderBlocked: 0 })
    expect((await plan()).numbers).toMatchObject({ eligible: 7, orderBlocked: 0 })
  })

  it('holds letters back behind an earlier one of their key that its recipe takes out', async () => {
    const recipe = parseRecipe({ patch: [{ op: 'remove', path: '/a' }] })
    const reported = (instanceId: string, payload: string) =>
      desk.reported(orders, { instanceId, payload: Buffer.from(payload) })
    for (const key of ['k', 'l']) for (let i = 0; i < 3; i++) await reported(key, '{"a":1}')
    expect((await plan({ recipe })).numbers).toMatchObject({ eligible: 6, invalid: 0, orderBlocked: 0 })
    await reported('m', '{}')
    for (let i = 0; i < 2; i++) await reported('m', '{"a":1}')
    expect((await plan({ recipe })).numbers).toMatchObject({ eligible: 6, invalid: 1, orderBlocked: 2 })
  })

  it('discards many with a reason, and restores them', async () => {
    await desk.dead(orders, names(1, 3))
    const discarded = await run({ action: 'discard', reason: 'test data' })
    expect(discarded).toMatchObject({ state: 'done', counts: { sent: 3, confirmed: 3 } })
    expect(
      (await desk.office.letters.numbers.total({ originalQueue: orders, status: 'Pending' })).total,
    ).toBe(0)
    const restored = await run({ action: 'restore' })
    expect(restored).toMatchObject({ state: 'done', counts: { sent: 3 } })
    expect(
      (await desk.office.letters.numbers.total({ originalQueue: orders, status: 'Pending' })).total,
    ).toBe(3)
  })

  it('sends, discards and restores letters that lie in no dead queue, of plain queues and of engines', async () => {
    const settings = { leaseTimeout: '1h', expireTimeout: '240h', requestedPartitions: 1 }
    for (const queueName of [mails, 'hmac-rotation-queue']) {
      await desk.office.queues.create({ ...settings, queueName }).catch(() => {})
      await desk.dead(queueName, names(1, 3))
      const selection = of(queueName)
      expect((await run({ selection, action: 'discard', reason: 'test data' })).counts.sent).toBe(3)
      expect((await run({ selection, action: 'restore' })).counts.sent).toBe(3)
      const sent = await run({ selection })
      expect(sent).toMatchObject({ state: 'done', counts: { sent: 3 } })
      expect(await desk.work(queueName), queueName).toEqual(names(1, 3))
      expect((await read(sent.id)).counts.confirmed).toBe(3)
    }
  })

  it('moves letters to another queue', async () => {
    await desk.createQueue(mails)
    await desk.dead(orders, names(1, 3))
    expect(await codeOf(plan({ action: 'move', queue: 'nowhere' }))).toBe('parameter_invalid')
    const moved = await run({ action: 'move', queue: mails })
    expect(moved.counts.sent).toBe(3)
    expect(await desk.work(mails)).toEqual(names(1, 3))
    expect((await read(moved.id)).counts.confirmed).toBe(3)
  })

  it('sends letters of a key to several places in the order of capture', async () => {
    await desk.createQueue(mails)
    const selection = { by: 'filter', filter: { instanceId: orders } } as const
    const rowKeys: string[] = []
    for (const [i, queue] of [orders, mails, orders, orders, mails, mails, orders].entries())
      rowKeys.push(await desk.reported(queue, { instanceId: orders, payload: Buffer.from(`${i}`) }))
    const { id } = await run({ selection })
    const done = await read(id)
    expect(done.exceptions).toEqual([])
    expect(done).toMatchObject({ state: 'done', counts: { planned: 7, sent: 7 } })
    expect(await desk.work(orders)).toEqual(['0', '2', '3', '6'])
    expect(await desk.work(mails)).toEqual(['1', '4', '5'])
    // The end of an item's id is its serial, which ascends over all queues.
    const serials: (string | undefined)[] = []
    for (const rowKey of rowKeys) {
      const { letter } = await desk.office.letters.get({ engine: 'hmac', rowKey })
      serials.push(letter.sentAs?.slice(-9))
    }
    expect(serials).toEqual(serials.toSorted())
  })

  it('sends in the order of capture to a place, whatever the letters came from, when asked to', async () => {
    for (const [i, engine] of ['hmac', 'tls', 'tls', 'hmac', 'spn', 'hmac'].entries())
      await desk.reported(orders, { engine, payload: Buffer.from(`${i}`) })
    expect(await run({ terms: { ...PLAIN, order: 'capture' } })).toMatchObject({
      state: 'done',
      counts: { sent: 6 },
    })
    expect(await desk.work(orders)).toEqual(['0', '1', '2', '3', '4', '5'])
  })

  it('lists its letters page by page, and by what became of them', async () => {
    await desk.dead(orders, names(1, 7))
    const { id } = await run()
    await desk.work(orders, (payload) => payload < 'n4')
    const walk = async (outcome: MemberOutcome | null): Promise<(string | undefined)[]> => {
      const seen: (string | undefined)[] = []
      let token: string | null = null
      do {
        const page: Members = await desk.office.redrives.members(id, { limit: 2, token, outcome })
        expect(page.items.length).toBeLessThanOrEqual(2)
        seen.push(...page.items.map(({ key }) => key?.rowKey))
        token = page.continuationToken
      } while (token !== null)
      return seen
    }
    const all = await walk(null)
    expect(new Set(all).size).toBe(7)
    expect(await walk('confirmed')).toEqual(all.slice(0, 3))
    expect(await walk('returned')).toEqual(all.slice(3))
    expect(await walk('skipped')).toEqual([])
    const { continuationToken } = await desk.office.redrives.members(id, PAGE)
    const elsewhere = { ...PAGE, token: continuationToken, outcome: 'skipped' } as const
    expect(await codeOf(desk.office.redrives.members(id, elsewhere))).toBe('continuation_token_invalid')
  })

  it('forgets plans that nobody started, and what ended long ago', async () => {
    await desk.dead(orders, names(1, 2))
    const unused = await plan()
    const { id } = await run()
    await desk.office.advanceClock(2n * 3_600_000_000n)
    await desk.office.advanceClock(1n)
    expect(await codeOf(read(unused.id))).toBe('redrive_unknown')
    expect((await read(id)).state).toBe('done')
  })
})

describe.each(stores)('a redrive on $name that its server leaves', (kind) => {
  let desk: RedriveOffice
  beforeEach(async () => {
    desk = await RedriveOffice.open(kind)
    await desk.createQueue('orders')
  })
  afterEach(() => desk?.close())

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
  it('is begun, and not resumed, by another server when its own carries nothing out', async () => {
    await desk.dead('orders', names(1, 3))
    const { store, clock } = { store: desk.place.url, clock: desk.clock }
    const caller = await Office.open({ store, clock, carriesOutRedrives: false })
    try {
      const { id } = await desk.plan()
      expect(await caller.redrives.start(id, 'nell')).toMatchObject({ state: 'running', isHeld: false })
      await desk.office.redrives.settle()
      expect(await desk.office.redrives.read(id)).toMatchObject({
        state: 'done',
        counts: { sent: 3 },
        resumed: 0,
      })
    } finally {
      await caller.close()
    }
  })
})
