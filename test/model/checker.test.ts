/** The checker must be able to fail: histories that a correct queue cannot have, each with one thing wrong. */
import { describe, expect, it } from 'vitest'
import { type Instant, instant } from '../../src/core/clock.ts'
import type { ItemId, LeasedItem, StoredItem } from '../../src/queues/queue.ts'
import { violations } from './checker.ts'
import type { Call, Deed, Ending, History, Rules } from './history.ts'

const RULES: Rules = {
  leaseUs: 1_000_000n,
  expireUs: 60_000_000n,
  maxAttempts: 0,
  hasDeadQueue: true,
  servers: 1,
}

const at = (ms: number): Instant => instant(BigInt(ms) * 1_000n)
// Ids of these made-up histories are letters: their order is all that counts.
const idOf = (id: string): ItemId => id as ItemId
const content = (label: string) => ({ encoding: '', kind: '', reference: '', payload: Buffer.from(label) })

const produced = (...ids: string[]): Deed => ({
  verb: 'produce',
  items: ids.map((id) => ({ label: `item ${id}`, id, enqueueAt: null })),
})

const leased = (ms: number, ...given: readonly { label: string; id: string; attempts?: number }[]): Deed => ({
  verb: 'lease',
  batchSize: 10,
  items: given.map(
    ({ label, id, attempts = 1 }): LeasedItem => ({
      ...content(`item ${label}`),
      id: idOf(id),
      attempts,
      leaseDeadline: at(ms + 1_000),
    }),
  ),
})

/** Calls one after the other, each at the millisecond beside it. */
const inTurn = (...deeds: readonly (readonly [ms: number, deed: Deed])[]): Call[] =>
  deeds.map(([ms, deed], i) => ({
    ...deed,
    refused: null,
    began: 2 * i,
    ended: 2 * i + 1,
    from: at(ms),
    to: at(ms),
  }))

const stored = (label: string, id: string, more: Partial<StoredItem> = {}): StoredItem => ({
  ...content(`item ${label}`),
  id: idOf(id),
  sourceId: '',
  isLeased: false,
  leaseDeadline: null,
  createdAt: at(0),
  expireDeadline: at(60_000),
  enqueueAt: null,
  attempts: 0,
  maxAttempts: 0,
  death: null,
  ...more,
})

const letter = (label: string, sourceId: string, attempts: number): StoredItem =>
  stored(label, `letter-${label}`, {
    sourceId,
    createdAt: at(50),
    expireDeadline: null,
    death: { queueName: 'q', partition: 0, reason: 'rejected', attempts, createdAt: at(0), diedAt: at(50) },
  })

function ended(ms: number, queued: readonly StoredItem[], dead: readonly StoredItem[] = []): Ending {
  const held = queued.filter(({ isLeased }) => isLeased)
  const now = at(ms)
  const depth = {
    queueName: 'q',
    ready: queued.length - held.length,
    leased: held.length,
    scheduled: 0,
    held: 0,
    dead: 0,
  }
  return {
    now,
    queued,
    scheduled: [],
    dead,
    stats: {
      queueName: 'q',
      produceWaiting: 0,
      leaseWaiting: 0,
      completeWaiting: 0,
      inFlight: 0,
      partitions: [
        {
          partition: 0,
          total: queued.length,
          totalLeased: held.length,
          scheduled: 0,
          failures: 0,
          averageAgeUs: queued.length === 0 ? 0n : now,
          averageLeasedAgeUs: held.length === 0 ? 0n : (held[0]?.leaseDeadline ?? 0n) - now,
        },
      ],
    },
    depth: { ...depth, oldestAt: queued[0]?.createdAt ?? null },
    deadDepth: { ...depth, ready: dead.length, leased: 0, dead: dead.length, oldestAt: null },
  }
}

const wrong = (calls: readonly Call[], ending: Ending, rules: Partial<Rules> = {}): string[] => {
  const history: History = { rules: { ...RULES, ...rules }, calls, ending }
  return violations(history)
}

const completed = (...ids: string[]): Deed => ({ verb: 'complete', ids })
const retried = (dead: boolean, ...ids: string[]): Deed => ({ verb: 'retry', ids, retryAt: null, dead })

describe('the checker of histories', () => {
  it('finds nothing wrong with a correct one', () => {
    const calls = inTurn(
      [0, produced('a', 'b', 'c')],
      [10, leased(10, { label: 'a', id: 'a' }, { label: 'b', id: 'b' })],
      [20, completed('a')],
      [30, retried(false, 'b')],
      [40, leased(40, { label: 'c', id: 'c' }, { label: 'b', id: 'd', attempts: 2 })],
      [50, retried(true, 'd')],
    )
    const holding = stored('c', 'c', { isLeased: true, leaseDeadline: at(1_040), attempts: 1 })
    expect(wrong(calls, ended(50, [holding], [letter('b', 'd', 2)]))).toEqual([])
  })

  it('sees an item that nobody produced', () => {
    const calls = inTurn([10, leased(10, { label: 'x', id: 'x' })])
    expect(wrong(calls, ended(10, []))).toContain('item x was delivered and never produced')
  })

  it('sees two holders of one item', () => {
    const calls = inTurn(
      [0, produced('a')],
      [10, leased(10, { label: 'a', id: 'a' })],
      [500, leased(500, { label: 'a', id: 'b', attempts: 2 })],
      [510, completed('b')],
    )
    expect(wrong(calls, ended(510, []))).toEqual(['item a was delivered while another lease of it was valid'])
  })

  it('sees a lease that is offered again within its grace, or before an extension is over', () => {
    const again = (ms: number, ...between: readonly (readonly [number, Deed])[]) =>
      wrong(
        inTurn(
          [0, produced('a')],
          [10, leased(10, { label: 'a', id: 'a' })],
          ...between,
          [ms, leased(ms, { label: 'a', id: 'b', attempts: 2 })],
          [ms, completed('b')],
        ),
        ended(ms, []),
      )
    const extended: Deed = { verb: 'extend', ids: ['a'], deadline: at(3_000) }
    expect(again(1_020)).toEqual([])
    expect(again(1_012)).toHaveLength(1)
    expect(again(1_020, [500, extended])).toHaveLength(1)
    expect(again(3_010, [500, extended])).toEqual([])
  })

  it('sees attempts that jump, a delivery after complete, and a second settlement', () => {
    const calls = inTurn(
      [0, produced('a', 'b')],
      [10, leased(10, { label: 'a', id: 'a' }, { label: 'b', id: 'b', attempts: 2 })],
      [20, completed('a', 'b')],
      [30, completed('a')],
      [2_000, leased(2_000, { label: 'a', id: 'c', attempts: 2 })],
      [2_000, completed('c')],
    )
    expect(wrong(calls, ended(2_000, []))).toEqual(
      expect.arrayContaining([
        'item b was delivered with attempts 2',
        'item a was delivered after complete had ended it',
        'item a was settled 2 times under one id',
      ]),
    )
  })

  it('sees an item overtaken by one behind it, delivered or still waiting', () => {
    const calls = inTurn(
      [0, produced('a', 'b', 'c')],
      [10, leased(10, { label: 'b', id: 'b' })],
      [20, leased(20, { label: 'a', id: 'a' })],
      [30, completed('a', 'b')],
    )
    expect(wrong(calls, ended(30, [stored('c', 'c')]))).toEqual([
      'item a (a) was delivered after an item that stood behind it',
    ])
    const skipped = inTurn(
      [0, produced('a', 'b')],
      [10, leased(10, { label: 'b', id: 'b' })],
      [20, completed('b')],
    )
    expect(wrong(skipped, ended(20, [stored('a', 'a')]))).toEqual([
      'item a still waits although item b stood behind it',
    ])
  })

  it('sees a lost item, one in two places, and a letter that appears twice', () => {
    expect(wrong(inTurn([0, produced('a')]), ended(10, []))).toEqual(['item a is lost'])
    const calls = inTurn(
      [0, produced('a')],
      [10, leased(10, { label: 'a', id: 'a' })],
      [50, retried(true, 'a')],
    )
    const twice = ended(50, [], [letter('a', 'a', 1), letter('a', 'a', 1)])
    expect(wrong(calls, twice)).toContain('item a ended in several places: dead, dead')
  })

  it('sees a letter with the wrong source id, reason or attempts', () => {
    const calls = inTurn(
      [0, produced('a')],
      [10, leased(10, { label: 'a', id: 'a' })],
      [50, retried(true, 'a')],
    )
    expect(wrong(calls, ended(50, [], [letter('a', 'b', 1)]))).toHaveLength(1)
    expect(wrong(calls, ended(50, [], [letter('a', 'a', 3)]))).toHaveLength(1)
    const { death, ...rest } = letter('a', 'a', 1)
    if (death === null) throw new Error('a letter has a death')
    const expired: StoredItem = { ...rest, death: { ...death, reason: 'expired' } }
    expect(wrong(calls, ended(50, [], [expired]))).toContain("item a died as 'expired' and was rejected")
  })

  it('sees a delivery past the expiry and one more than allowed', () => {
    const calls = inTurn(
      [0, produced('a')],
      [10, leased(10, { label: 'a', id: 'a' })],
      [2_000, leased(2_000, { label: 'a', id: 'b', attempts: 2 })],
      [2_000, completed('b')],
    )
    expect(wrong(calls, ended(2_000, []), { expireUs: 1_500_000n })).toEqual([
      'item a was delivered past its expiry',
    ])
    expect(wrong(calls, ended(2_000, []), { maxAttempts: 1 })).toEqual([
      'item a was delivered 2 times, 1 are allowed',
    ])
  })

  it('sees a valid holder refused and a stale one served', () => {
    const refused = inTurn(
      [0, produced('a')],
      [10, leased(10, { label: 'a', id: 'a' })],
      [20, completed('a')],
    )
    const last = refused.at(-1)
    if (last === undefined) throw new Error('there are calls')
    const calls = [...refused.slice(0, -1), { ...last, refused: 'item_unknown' }]
    const holding = stored('a', 'a', { isLeased: true, leaseDeadline: at(1_010), attempts: 1 })
    expect(wrong(calls, ended(20, [holding]))).toEqual(['complete of a was refused although all are leased'])
    const stale = inTurn(
      [0, produced('a')],
      [10, leased(10, { label: 'a', id: 'a' })],
      [2_000, leased(2_000, { label: 'a', id: 'b', attempts: 2 })],
      [2_010, retried(false, 'a')],
      [2_020, completed('b')],
    )
    expect(wrong(stale, ended(2_020, []))).toEqual([
      'item a: retry was granted after the item went to another holder',
    ])
  })

  it('sees counts that are not what the lists show', () => {
    const ending = ended(10, [stored('a', 'a')])
    const [partition] = ending.stats.partitions
    if (partition === undefined) throw new Error('there is a partition')
    const off = { ...ending, stats: { ...ending.stats, partitions: [{ ...partition, total: 2 }] } }
    expect(wrong(inTurn([0, produced('a')]), off)).toEqual(['stats show total 2, the lists 1'])
  })
})
