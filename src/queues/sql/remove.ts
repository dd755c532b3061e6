/** complete, items.delete, clear: take items out for good. */
import { type Integer, type Session, sql, type Transaction, type Value } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import type { CountChange } from '../counts.ts'
import { SHELF } from '../schema.ts'

type Counted = 'ready' | 'leased' | 'scheduled' | 'held'
type Summed = 'created_s' | 'created_us' | 'deadline_s' | 'deadline_us'

/** What was removed, as counts see it. */
interface RemovedRow extends Readonly<Record<Counted, Integer> & Record<Summed, Integer | null>> {
  /** 'serial:case:attempts' of those that have one, between commas. */
  readonly cases: string | null
}

/** Sums over a set of item rows; scheduled items count neither as queued nor in the ages. */
const tally = (join: string): string => `
  count(CASE WHEN shelf = ${SHELF.queue} AND leased = 0 THEN 1 END) AS ready,
  count(CASE WHEN shelf = ${SHELF.queue} AND leased = 1 THEN 1 END) AS leased,
  count(CASE WHEN shelf = ${SHELF.scheduled} THEN 1 END) AS scheduled,
  count(CASE WHEN shelf = ${SHELF.held} THEN 1 END) AS held,
  sum(CASE WHEN shelf <> ${SHELF.scheduled} THEN created_at / 1000000 END) AS created_s,
  sum(CASE WHEN shelf <> ${SHELF.scheduled} THEN created_at % 1000000 END) AS created_us,
  sum(CASE WHEN leased = 1 THEN lease_deadline / 1000000 END) AS deadline_s,
  sum(CASE WHEN leased = 1 THEN lease_deadline % 1000000 END) AS deadline_us,
  ${join}(id || ':' || case_id || ':' || attempts, ',') AS cases`
const TALLY = { postgres: tally('string_agg'), sqlite: tally('group_concat') }

const FACTS = 'id, shelf, leased, attempts, created_at, lease_deadline, case_id'

/** Adds items up and deletes them, by primary key: PostgreSQL in one statement, SQLite in two. */
const removing = (names: { readonly remove: string; readonly tally: string }, those: string) => ({
  remove: sql(names.remove, {
    postgres: `WITH gone AS (DELETE FROM bartleby.items WHERE ${those} RETURNING ${FACTS}) SELECT ${TALLY.postgres} FROM gone`,
    sqlite: `DELETE FROM items WHERE ${those}`,
  }),
  tally: sql(
    names.tally,
    { postgres: '', sqlite: `SELECT ${TALLY.sqlite} FROM items WHERE ${those}` },
    { bigints: true },
  ),
})

const leased = removing(
  { remove: 'items.complete', tally: 'items.tallyLeased' },
  `part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[]) AND leased = 1`,
)
const any = removing(
  { remove: 'items.delete', tally: 'items.tallyAny' },
  'part = $1 AND shelf = ANY($3::int[]) AND id = ANY($2::bigint[])',
)

/** The first `$3` serials of a shelf behind `$4`, leased ones only with `$5` = 1. Primary key order. */
const nextToClear = sql(
  'items.nextToClear',
  `SELECT id FROM bartleby.items INDEXED BY items_in_order
   WHERE part = $1 AND shelf = $2 AND id > $4 AND leased <= $5 ORDER BY part, shelf, id LIMIT $3 FOR UPDATE`,
)

/** Adds up and removes what a pair of statements is about; SQLite removes only what `isWanted`. */
async function remove(
  tx: Transaction,
  { remove, tally }: ReturnType<typeof removing>,
  values: readonly Value[],
  isWanted: (tally: RemovedRow | undefined) => boolean = () => true,
): Promise<RemovedRow | undefined> {
  const isOne = tx.dialect === 'postgres'
  const [row] = await tx.rows<RemovedRow>(isOne ? remove : tally, ...values)
  if (!isOne && isWanted(row)) await tx.run(remove, ...values)
  return row
}

/**
 * Removes leased items. `count` tells how many of `serials` there were; the caller insists on all of them. `cases` are
 * the cases of those that failed before or were sent back, by serial.
 */
export async function removeLeased(
  tx: Transaction,
  part: number,
  serials: readonly number[],
): Promise<{
  readonly count: number
  readonly change: CountChange
  readonly cases: ReadonlyMap<number, LetterId>
}> {
  const countOf = (tally: RemovedRow | undefined) => Number(tally?.leased ?? 0)
  const tally = await remove(tx, leased, [part, serials], (found) => countOf(found) === serials.length)
  return { count: countOf(tally), change: changeOf(tally), cases: caseIdsOf(tally) }
}

/** An item that was removed and had a case. */
export interface RemovedCase {
  readonly serial: number
  readonly caseId: LetterId
  readonly attempts: number
}

/** Removes whatever of `serials` is there, leased, scheduled or held. `cases` are those that have a case, in their order. */
export async function removeAny(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  shelves: readonly number[] = Object.values(SHELF),
): Promise<{ readonly change: CountChange; readonly cases: readonly RemovedCase[] }> {
  const tally = await remove(tx, any, [part, serials, shelves])
  return { change: changeOf(tally), cases: casesOf(tally) }
}

/** Serials of a shelf behind `after`, in order, for removal in bounded steps. */
export async function nextSerials(
  session: Session,
  part: number,
  shelf: number,
  page: { readonly after: number; readonly limit: number; readonly leasedToo: boolean },
): Promise<number[]> {
  const rows = await session.rows<{ id: Integer }>(
    nextToClear,
    part,
    shelf,
    page.limit,
    page.after,
    page.leasedToo ? 1 : 0,
  )
  return rows.map((row) => Number(row.id))
}

function casesOf(row: RemovedRow | undefined): readonly RemovedCase[] {
  const cases = (row?.cases?.split(',') ?? []).map((each) => {
    const [serial = '', id = '', attempts = ''] = each.split(':')
    return { serial: Number(serial), caseId: letterId(id), attempts: Number(attempts) }
  })
  return cases.sort((a, b) => a.serial - b.serial)
}

const caseIdsOf = (row: RemovedRow | undefined): ReadonlyMap<number, LetterId> =>
  new Map(casesOf(row).map(({ serial, caseId }) => [serial, caseId]))

const changeOf = (row: RemovedRow | undefined): CountChange => ({
  ready: -Number(row?.ready ?? 0),
  leased: -Number(row?.leased ?? 0),
  scheduled: -Number(row?.scheduled ?? 0),
  held: -Number(row?.held ?? 0),
  created: { seconds: -BigInt(row?.created_s ?? 0), micros: -BigInt(row?.created_us ?? 0) },
  deadline: { seconds: -BigInt(row?.deadline_s ?? 0), micros: -BigInt(row?.deadline_us ?? 0) },
})
