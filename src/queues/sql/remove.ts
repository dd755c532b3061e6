/** complete, items.delete and clear: items leave for good. */
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Integer, type Session, sql, type Transaction, type Value } from '../../store/database.ts'
import { missingValue } from '../../store/missing-value.ts'
import { type CountChange, countedFrom, micros, seconds } from '../counts.ts'
import { SHELF } from '../schema.ts'
import { runsOf } from './lease.ts'

type Counted = 'ready' | 'leased' | 'scheduled' | 'held'
type Summed = 'created_s' | 'created_us' | 'deadline_s' | 'deadline_us'

interface RemovedRow extends Readonly<Record<Counted, Integer> & Record<Summed, Integer | null>> {
  /** 'serial:case:attempts' of items with a case, joined by commas. */
  readonly cases: string | null
}

const CASES = `string_agg(id || ':' || case_id || ':' || attempts, ',') FILTER (WHERE case_id IS NOT NULL) AS cases`

/** Sums over items of any shelf; scheduled ones count neither as queued nor in the ages. */
const SUMS = `
  count(*) FILTER (WHERE shelf = ${SHELF.queue} AND leased = 0) AS ready,
  count(*) FILTER (WHERE shelf = ${SHELF.queue} AND leased = 1) AS leased,
  count(*) FILTER (WHERE shelf = ${SHELF.scheduled}) AS scheduled,
  count(*) FILTER (WHERE shelf = ${SHELF.held}) AS held,
  ${seconds('created_at')} FILTER (WHERE shelf <> ${SHELF.scheduled}) AS created_s,
  ${micros('created_at')} FILTER (WHERE shelf <> ${SHELF.scheduled}) AS created_us,
  ${seconds('lease_deadline')} FILTER (WHERE leased = 1) AS deadline_s,
  ${micros('lease_deadline')} FILTER (WHERE leased = 1) AS deadline_us, ${CASES}`

/** Sums over leased items: half the work, and completing is what queues do most. */
const SUMS_OF_LEASED = `0 AS ready, count(*) AS leased, 0 AS scheduled, 0 AS held,
  ${seconds('created_at')} AS created_s, ${micros('created_at')} AS created_us,
  ${seconds('lease_deadline')} AS deadline_s, ${micros('lease_deadline')} AS deadline_us, ${CASES}`

const FACTS = 'id, shelf, leased, attempts, created_at, lease_deadline, case_id'

/** Sums items up and deletes them by primary key: PostgreSQL in one statement, SQLite in two. */
const removing = (remove: string, sum: string, those: string, sums = SUMS_OF_LEASED) => ({
  remove: sql(remove, {
    postgres: `WITH gone AS (DELETE FROM bartleby.items WHERE ${those} RETURNING ${FACTS}) SELECT ${sums} FROM gone`,
    sqlite: `DELETE FROM items WHERE ${those}`,
  }),
  ...summing(sum, those, sums),
})

const summing = (name: string, those: string, sums: string) => ({
  sum: sql(name, { sqlite: `SELECT ${sums} FROM items WHERE ${those}` }, { bigints: true }),
})

const LEASED = `part = $1 AND shelf = ${SHELF.queue} AND leased = 1`
const leased = removing('items.complete', 'items.tallyLeased', `${LEASED} AND id = ANY($2::bigint[])`)

/**
 * The same with the change of the counts (PostgreSQL only). Its number of items is NULL, which fails the transaction, when there are not
 * `$3` of them or one has a case, which takes more to close.
 */
const completeCounted = sql('items.completeCounted', {
  postgres: `
    WITH gone AS (
      DELETE FROM bartleby.items WHERE ${LEASED} AND id = ANY($2::bigint[])
      RETURNING case_id, created_at, lease_deadline
    )
    ${countedFrom('gone', {
      leased: 'CASE WHEN count(*) = $3 AND count(case_id) = 0 THEN - count(*) END',
      created_s: `- ${seconds('created_at')}`,
      created_us: `- ${micros('created_at')}`,
      deadline_s: `- coalesce(${seconds('lease_deadline')}, 0)`,
      deadline_us: `- coalesce(${micros('lease_deadline')}, 0)`,
    })}`,
})

/** Removes leased items without cases and counts them; `isUncounted` recognises the failure otherwise. */
export async function removeCounted(
  tx: Transaction,
  part: number,
  serials: readonly number[],
): Promise<void> {
  await tx.run(completeCounted, part, serials, serials.length)
}

export const isUncounted = (error: unknown): boolean => missingValue(error) === 'partition_deltas.leased'

/** Neighbours, as most completions are: SQLite would parse, sort and look up a list one by one. */
const RUN = `${LEASED} AND id >= $2 AND id <= $3`
const leasedRun = {
  remove: sql('items.completeRun', { sqlite: `DELETE FROM items WHERE ${RUN}` }),
  ...summing('items.tallyRun', RUN, SUMS_OF_LEASED),
}
const any = removing(
  'items.delete',
  'items.tallyAny',
  'part = $1 AND shelf = ANY($3::int[]) AND id = ANY($2::bigint[])',
  SUMS,
)

/** The first `$3` serials of a shelf behind `$4`, leased ones only with `$5` = 1. Primary key order. */
const nextToClear = sql(
  'items.nextToClear',
  `SELECT id FROM bartleby.items INDEXED BY items_in_order
   WHERE part = $1 AND shelf = $2 AND id > $4 AND leased <= $5 ORDER BY part, shelf, id LIMIT $3 FOR UPDATE`,
)

/** Sums up and removes; SQLite removes only what `isWanted`. */
async function remove(
  tx: Transaction,
  { remove, sum }: ReturnType<typeof removing>,
  asked: readonly (readonly Value[])[],
  isWanted: (found: readonly RemovedRow[]) => boolean = () => true,
): Promise<readonly RemovedRow[]> {
  const isOne = tx.dialect === 'postgres'
  const found: RemovedRow[] = []
  for (const values of asked) found.push(...(await tx.rows<RemovedRow>(isOne ? remove : sum, ...values)))
  if (!isOne && isWanted(found)) for (const values of asked) await tx.run(remove, ...values)
  return found
}

/** Average length of runs that are worth two statements each. */
const WORTH_A_RUN = 16

/**
 * Removes leased items. `count` is how many of the ascending `serials` there were; the caller insists on all. `cases` are those of items
 * that failed before or were sent back, by serial.
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
  const countOf = (found: readonly RemovedRow[]) => sumOf(found, 'leased')
  const isAll = (found: readonly RemovedRow[]) => countOf(found) === BigInt(serials.length)
  const runs = tx.dialect === 'sqlite' ? runsOf(serials) : []
  const byRuns = runs.length > 0 && runs.length * WORTH_A_RUN <= serials.length
  const found = byRuns
    ? await remove(
        tx,
        leasedRun,
        runs.map((run) => [part, ...run]),
        isAll,
      )
    : await remove(tx, leased, [[part, serials]], isAll)
  return { count: Number(countOf(found)), change: changeOf(found), cases: caseIdsOf(found) }
}

export interface RemovedCase {
  readonly serial: number
  readonly caseId: LetterId
  readonly attempts: number
}

/** Removes what is there of `serials`, leased, scheduled or held; `cases` in serial order. */
export async function removeAny(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  shelves: readonly number[] = Object.values(SHELF),
): Promise<{ readonly change: CountChange; readonly cases: readonly RemovedCase[] }> {
  const found = await remove(tx, any, [[part, serials, shelves]])
  return { change: changeOf(found), cases: casesOf(found) }
}

/** Serials of a shelf behind `after`, for removal in bounded steps. */
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

function casesOf(found: readonly RemovedRow[]): readonly RemovedCase[] {
  const cases = found
    .flatMap(({ cases }) => cases?.split(',') ?? [])
    .map((each) => {
      const [serial = '', id = '', attempts = ''] = each.split(':')
      return { serial: Number(serial), caseId: letterId(id), attempts: Number(attempts) }
    })
  return cases.sort((a, b) => a.serial - b.serial)
}

const caseIdsOf = (found: readonly RemovedRow[]): ReadonlyMap<number, LetterId> =>
  new Map(casesOf(found).map(({ serial, caseId }) => [serial, caseId]))

const sumOf = (found: readonly RemovedRow[], column: Counted | Summed): bigint =>
  found.reduce((sum, row) => sum + BigInt(row[column] ?? 0), 0n)

const changeOf = (found: readonly RemovedRow[]): CountChange => ({
  ready: -Number(sumOf(found, 'ready')),
  leased: -Number(sumOf(found, 'leased')),
  scheduled: -Number(sumOf(found, 'scheduled')),
  held: -Number(sumOf(found, 'held')),
  created: { seconds: -sumOf(found, 'created_s'), micros: -sumOf(found, 'created_us') },
  deadline: { seconds: -sumOf(found, 'deadline_s'), micros: -sumOf(found, 'deadline_us') },
})
