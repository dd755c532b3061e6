import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { getHistory } from '../../src/history/get.ts'
import { History } from '../../src/history/history.ts'
import { recordHistory } from '../../src/history/record.ts'
import { change } from '../../src/letters/change.ts'
import type { Letter, LetterId } from '../../src/letters/letter.ts'
import { lockLetter, readLetter, readLetterById } from '../../src/letters/lists/detail.ts'
import { newRegisters, type Registers } from '../../src/letters/registers.ts'
import { inOffice } from '../../src/letters/work.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import type { Database } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import { captureAllNew } from '../world/capture.ts'
import { sizeOf } from '../world/limits.ts'
import { reportOf } from '../world/report.ts'
import { type FreshStore, stores } from '../world/stores.ts'

/** One of several servers on a store. */
interface Desk {
  readonly db: Database
  readonly registers: Registers
}

/** What a server does in one transaction: captures of instances, and rows of history of correlation ids. */
interface Work {
  readonly desk: number
  readonly captures: readonly number[]
  readonly records: readonly number[]
}

const DESKS = 3
const NAMES = 3

const works = fc.array(
  fc.record({
    desk: fc.nat(DESKS - 1),
    captures: fc.array(fc.nat(NAMES - 1), { maxLength: 4 }),
    records: fc.array(fc.nat(NAMES - 1), { maxLength: 4 }),
  }),
  { minLength: 2, maxLength: 8 },
)

describe.each(stores)('row keys of one microsecond on $name', (kind) => {
  const clock = new TestClock()
  const START = instant(1_800_000_000_000_000n)
  let place: FreshStore
  let desks: readonly Desk[]
  let history: History
  let reports = 0

  beforeAll(async () => {
    place = await kind.fresh()
    clock.freeze(START)
    desks = Array.from({ length: DESKS }, () => ({
      db: openDatabase(place.url, { poolSize: 2 }),
      registers: newRegisters(),
    }))
    await migrate(anyDesk().db, MIGRATIONS)
    history = new History(anyDesk().db, clock, new EngineDirectory({ context: 'publisher' }))
  })
  afterAll(async () => {
    for (const { db } of desks ?? []) await db.close()
    await place?.dispose()
  })

  const anyDesk = (number = 0): Desk => {
    const desk = desks[number]
    if (desk === undefined) throw new Error(`there is no desk ${number}`)
    return desk
  }
  const session = <T>(work: Parameters<Database['session']>[1]) =>
    anyDesk().db.session('test', work) as Promise<T>

  /** Captures and records; every capture is discarded at once, which history tells under the same correlation id. */
  const carryOut = ({ desk, captures, records }: Work): Promise<LetterId[]> => {
    const { db, registers } = anyDesk(desk)
    return inOffice(db, clock, 'test', async (work) => {
      const reported = captures.map((name) =>
        reportOf(++reports, clock.now(), {
          ...{ engine: 'hmac', instanceId: `i-${name}`, correlationId: `c-${name}` },
        }),
      )
      const ids = await captureAllNew(work, registers, reported)
      for (const id of ids) await lockLetter(work.tx, id)
      const letters = ids.map((id) => ({ id, engine: 'hmac' }))
      await change(work, 'discard', letters, { actor: 'tester', notes: null })
      await recordHistory(
        work.tx,
        records.map((name) => ({
          ...{ engine: 'hmac', operation: 'rotate', status: 'Succeeded', durationMs: 0, instanceId: null },
          ...{ correlationId: `c-${name}`, createdAt: clock.now() },
        })),
      )
      return ids
    })
  }

  it('are unique and in the order of captures, and each finds its own row', async () => {
    await fc.assert(
      fc.asyncProperty(works, async (all) => {
        clock.advance(1_000_000n)
        const from = clock.now()
        const done = await Promise.all(all.map(carryOut))
        const ids = done.flat()

        const letters = await Promise.all(ids.map((id) => session<Letter>((at) => readLetterById(at, id))))
        for (const { id, rowKey } of letters)
          expect(await session((at) => readLetter(at, 'hmac', rowKey))).toMatchObject({ id })
        expect(new Set(letters.map(({ rowKey }) => rowKey)).size).toBe(ids.length)
        for (const captured of done) {
          const mine = letters.filter(({ id }) => captured.includes(id))
          for (const each of Map.groupBy(mine, ({ instanceId }) => instanceId).values()) inOrder(each)
        }

        let recorded = 0
        for (let name = 0; name < NAMES; name++) {
          const { items } = await history.list({ correlationId: `c-${name}`, from }, { limit: 100 })
          inOrder(items.toReversed())
          for (const entry of items)
            expect(await session((at) => getHistory(at, 'hmac', entry.rowKey))).toMatchObject(entry)
          recorded += items.length
        }
        expect(recorded).toBe(2 * ids.length + all.flatMap(({ records }) => records).length)
      }),
      { numRuns: sizeOf(8, 60) },
    )
  })

  const inOrder = (rows: readonly { readonly rowKey: string }[]) => {
    const keys = rows.map(({ rowKey }) => rowKey)
    expect(keys).toEqual([...new Set(keys)].sort())
  }
})
