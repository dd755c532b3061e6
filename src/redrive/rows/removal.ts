/** Removal of plans never started and of redrives that ended long ago, in bounded batches. */
import { xid } from '../../core/xid.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type Database, type Integer, sql, type Transaction } from '../../store/database.ts'
import type { RunKind } from '../../work/run.ts'
import { removeRun } from '../../work/run-rows.ts'
import { type Redrive, type RedriveNumber, redriveNumber } from '../redrive.ts'
import { FORGOTTEN } from './rows.ts'

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

/** By primary keys; few rows per redrive. */
const REST = ['redrive_lanes', 'redrive_outcomes'].map((table) =>
  sql(`redrives.forget.${table}`, `DELETE FROM bartleby.${table} WHERE redrive = $1`),
)

/** Hides a redrive while its letters are being removed. */
const hideRow = sql('redrives.hide', `UPDATE bartleby.redrives SET state = '${FORGOTTEN}' WHERE number = $1`)
const removeRow = sql('redrives.remove', 'DELETE FROM bartleby.redrives WHERE number = $1')

/** True when there may be more. */
export const removeSomeLetters = async (tx: Transaction, number: RedriveNumber): Promise<boolean> =>
  (await tx.run(LETTERS, number, BATCH)) === BATCH

/** Removes some of a redrive, its row last; false when nothing is left. Cut short, it is hidden and found again. */
async function forgetSome(
  tx: Transaction,
  { number, id }: Pick<Redrive, 'number' | 'id'>,
  most: number,
): Promise<boolean> {
  await removeRun(tx, id)
  await tx.run(hideRow, number)
  for (const statement of PARTS) if ((await tx.run(statement, number, most)) === most) return true
  for (const statement of REST) await tx.run(statement, number)
  await tx.run(removeRow, number)
  return false
}

export async function forgetRedrive(db: Database, redrive: Pick<Redrive, 'number' | 'id'>): Promise<void> {
  while (await db.transaction('redrive.forget', (tx) => forgetSome(tx, redrive, BATCH)));
}

/** Plans out of date before `$1`, and redrives that ended before `$2`. Redrives are few. */
const readOld = sql(
  'redrives.old',
  `SELECT number, id FROM bartleby.redrives WHERE (started_at IS NULL AND state <> 'planning' AND valid_until < $1)
     OR (ended_at IS NOT NULL AND ended_at < $2) ORDER BY number LIMIT 1`,
)

const HOUR_US = 3_600_000_000n
const EVERY_US = 600_000_000n

/** Plans are kept an hour after they could be started, redrives for `retentionDays` after their end. */
export const redriveRemoval = (retentionDays: number): RunKind<OfficeWork> => ({
  kind: 'redrive-removal',
  batch: BATCH,
  rounds: {
    about: 'plans that were never started, and redrives that ended long ago',
    firstUs: EVERY_US,
    everyUs: EVERY_US,
  },
  step: async ({ tx, now }, _run, most) => {
    const times = [now - HOUR_US, now - BigInt(retentionDays) * 24n * HOUR_US]
    const [old] = await tx.rows<{ number: Integer; id: string }>(readOld, ...times)
    if (old === undefined) return { next: 'finished' }
    const redrive = { number: redriveNumber(old.number), id: xid(old.id) }
    return { done: (await forgetSome(tx, redrive, most)) ? 0 : 1, next: 'more' }
  },
})
