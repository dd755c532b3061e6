import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../test/world/stores.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { MIGRATIONS } from '../migrations.ts'
import type { Database } from '../store/database.ts'
import { foldCounts } from '../store/fold.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import {
  type CountChange,
  CountChanges,
  type InstantSum,
  instantSum,
  negated,
  partitionCounter,
  readCounts,
  sumOfInstants,
} from './counts.ts'
import { createQueue } from './records.ts'

const microseconds = ({ seconds, micros }: InstantSum) => seconds * 1_000_000n + micros
const anInstant = fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n }).map(instant)

describe('sums of instants', () => {
  it('lose nothing, from the year 1 to the year 9999', () => {
    fc.assert(
      fc.property(fc.array(anInstant), (all) => {
        const total = all.reduce<bigint>((sum, at) => sum + at, 0n)
        expect(microseconds(sumOfInstants(all))).toBe(total)
        expect(microseconds(negated(sumOfInstants(all)))).toBe(-total)
      }),
    )
  })

  it('fit 64 bits in both halves for a billion items', () => {
    const { seconds, micros } = instantSum(instant(1_800_000_000_999_999n), 1_000_000_000)
    for (const half of [seconds, micros]) expect(BigInt.asIntN(64, half)).toBe(half)
  })

  it('of one instant many times are its sum', () => {
    fc.assert(
      fc.property(anInstant, fc.nat(1_000), (at, times) => {
        expect(microseconds(instantSum(at, times))).toBe(at * BigInt(times))
      }),
    )
  })
})

const aChange: fc.Arbitrary<CountChange> = fc.record(
  {
    ready: fc.integer({ min: -1_000, max: 1_000 }),
    leased: fc.integer({ min: -1_000, max: 1_000 }),
    scheduled: fc.integer({ min: -1_000, max: 1_000 }),
    held: fc.integer({ min: -1_000, max: 1_000 }),
    dead: fc.integer({ min: -1_000, max: 1_000 }),
    created: fc.array(anInstant, { maxLength: 3 }).map(sumOfInstants),
    deadline: fc.array(anInstant, { maxLength: 3 }).map(sumOfInstants),
  },
  { requiredKeys: [] },
)

describe.each(stores)('counts on $name', (store) => {
  let place: FreshStore
  let db: Database
  const clock = new TestClock()

  beforeAll(async () => {
    place = await store.fresh()
    db = openDatabase(place.url, { poolSize: 4 })
    await migrate(db, MIGRATIONS)
  })

  afterAll(async () => {
    await db?.close()
    await place?.dispose()
  })

  let queues = 0
  const newParts = () =>
    db.transaction('test', async (tx) => {
      const at = instant(1_800_000_000_000_000n)
      const settings = {
        queueName: `queue-${queues++}`,
        createdAt: at,
        updatedAt: at,
        leaseTimeoutNs: 1n,
        expireTimeoutNs: 1n,
        deadQueue: '',
        reference: '',
        maxAttempts: 0,
        requestedPartitions: 2,
        namespace: '_system',
        onDeath: 'letter' as const,
      }
      const { partitions } = await createQueue(tx, settings, false)
      return partitions.map(({ part }) => part)
    })

  it('are zero for a new queue and for parts that nobody knows', async () => {
    const parts = await newParts()
    const counts = await db.session('test', (session) => readCounts(session, [...parts, 1_000_000]))
    for (const count of counts)
      expect(count).toMatchObject({ ready: 0, leased: 0, held: 0, createdSumUs: 0n })
  })

  it('are the sum of all changes, before, while and after they are folded', async () => {
    const oneTransaction = fc.array(fc.tuple(fc.nat(1), aChange), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.array(oneTransaction, { minLength: 1, maxLength: 12 }), async (transactions) => {
        const parts = await newParts()
        const write = (changes: (typeof transactions)[number]) =>
          db.transaction('test', async (tx) => {
            const all = new CountChanges()
            for (const [which, change] of changes) all.add(parts[which] ?? 0, change)
            all.write(tx)
          })
        const fold = async () => {
          if (db.dialect === 'postgres') await foldCounts(db, partitionCounter, { clock, owner: 'me' })
        }
        await Promise.all(
          transactions.flatMap((changes, i) => (i % 3 === 0 ? [write(changes), fold()] : [write(changes)])),
        )
        const expected = [0, 1].map((which) => {
          const mine = transactions.flat().flatMap(([part, change]) => (part === which ? [change] : []))
          const sum = (key: 'ready' | 'leased' | 'scheduled' | 'held' | 'dead') =>
            mine.reduce((total, change) => total + (change[key] ?? 0), 0)
          const instants = (key: 'created' | 'deadline') =>
            mine.reduce(
              (total, change) => total + (change[key] === undefined ? 0n : microseconds(change[key])),
              0n,
            )
          return {
            ready: sum('ready'),
            leased: sum('leased'),
            scheduled: sum('scheduled'),
            held: sum('held'),
            dead: sum('dead'),
            createdSumUs: instants('created'),
            deadlineSumUs: instants('deadline'),
          }
        })
        const read = () => db.session('test', (session) => readCounts(session, parts))
        expect(await read()).toEqual(expected)
        await fold()
        expect(await read()).toEqual(expected)
      }),
      { numRuns: 15 },
    )
  })
})
