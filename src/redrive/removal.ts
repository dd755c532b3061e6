/** Forgetting redrives: plans that were never started, and those that ended long ago, in bounded batches. */
import { xid } from '../core/xid.ts'
import { type Database, type Integer, sql, type Transaction } from '../db/database.ts'
import { removeRun } from '../work/run-rows.ts'
import { type Redrive, type RedriveNumber, redriveNumber } from './redrive.ts'
import { hideRedrive, removeRedrive } from './rows.ts'

/** Rows of one transaction. */
const BATCH = 2_000

/** Along the primary key. */
const removeSome = (table: 'redrive_letters' | 'redrive_exceptions', key: string, start: string) =>
  sql(
    `redrives.forget.${table}`,
    `DELETE FROM bartleby.${table} WHERE (${key}) IN (
       SELECT ${key} FROM bartleby.${table} WHERE (${key}) > ($1, ${start}) AND redrive <= $1 ORDER BY ${key} LIMIT $2)`,
  )

const LETTERS = removeSome('redrive_letters', 'redrive, lane, captured_at, letter', '-1, 0, 0')
const PARTS = [LETTERS, removeSome('redrive_exceptions', 'redrive, letter', '-1')]

/** By primary keys; few rows for each redrive. */
const removeRest = (['redrive_lanes', 'redrive_outcomes'] as const).map((table) =>
  sql(`redrives.forget.${table}`, `DELETE FROM bartleby.${table} WHERE redrive = $1`),
)

/** Removes some letters of a redrive; true when there may be more. */
export const removeSomeLetters = async (tx: Transaction, number: RedriveNumber): Promise<boolean> =>
  (await tx.run(LETTERS, number, BATCH)) === BATCH

/** Removes everything that is kept of a redrive, its row last: what is cut short is found again, and nobody is shown it. */
export async function forgetRedrive(
  db: Database,
  { number, id }: Pick<Redrive, 'number' | 'id'>,
): Promise<void> {
  await db.transaction('redrive.forget', async (tx) => {
    await removeRun(tx, id)
    await hideRedrive(tx, number)
  })
  for (const statement of PARTS) {
    for (;;) {
      const removed = await db.transaction('redrive.forget', (tx) => tx.run(statement, number, BATCH))
      if (removed < BATCH) break
    }
  }
  await db.transaction('redrive.forget', async (tx) => {
    for (const statement of removeRest) await tx.run(statement, number)
    await removeRedrive(tx, number)
  })
}

/** Plans, dropped or not, whose time was over before $1 and redrives that ended before $2. Redrives are few. */
const readOld = sql(
  'redrives.old',
  `SELECT number, id FROM bartleby.redrives WHERE (started_at IS NULL AND state <> 'planning' AND valid_until < $1)
     OR (ended_at IS NOT NULL AND ended_at < $2) ORDER BY number LIMIT 100`,
)

/** Redrives that nobody needs any more. */
export async function oldRedrives(
  db: Database,
  plansBefore: bigint,
  endedBefore: bigint,
): Promise<Pick<Redrive, 'number' | 'id'>[]> {
  const rows = await db.session('redrive.old', (session) =>
    session.rows<{ number: Integer; id: string }>(readOld, plansBefore, endedBefore),
  )
  return rows.map(({ number, id }) => ({ number: redriveNumber(number), id: xid(id) }))
}
