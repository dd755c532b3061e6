/**
 * What has to happen so that rows and their letters agree.
 *
 *   row \ letter   none       Pending       Resolved or Expired
 *   dead           capture    –             reopen
 *   processed      –          complete      confirm, when it was retried
 *   given up       let go     lay back      let go
 *   pending        –          –             –
 *
 * Given up are dead rows whose letter was discarded or has expired; letting go means what waits behind them in their
 * line. What is compared twice, or was half done when something crashed, comes to a dash.
 */
import { type LetterId, STATUS } from '../../letters/letter.ts'
import type { CaseRow } from '../../letters/reopen.ts'
import type { OutboxRow, ReconciledRow, RowOfLetter } from '../sql/letters.ts'
import type { Line } from '../sql/line.ts'
import type { RowAndLetter } from './rows-of-letters.ts'

export interface RowAndCase {
  readonly row: OutboxRow
  readonly letter: CaseRow
}

export interface Differences {
  readonly capture: readonly RowAndLetter[]
  readonly reopen: readonly RowAndCase[]
  readonly complete: readonly RowAndCase[]
  readonly confirm: readonly LetterId[]
  readonly layBack: readonly RowOfLetter[]
  readonly letGo: readonly Line[]
  /** Rows that need no more than that, and agree with their letters then. */
  readonly agreeing: readonly ReconciledRow[]
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer Each)[] ? Each[] : never }

/** `letters` are those that were found, as they are while they are locked; `rows` are the rows of these, likewise. */
export function compare(
  found: readonly RowAndLetter[],
  letters: ReadonlyMap<LetterId, CaseRow>,
  rows: ReadonlyMap<string, OutboxRow>,
): Differences {
  const all: Mutable<Differences> = {
    capture: [],
    reopen: [],
    complete: [],
    confirm: [],
    layBack: [],
    letGo: [],
    agreeing: [],
  }
  for (const each of found) {
    const row = each.letterId === null ? each.row : rows.get(each.row.id)
    const letter = each.letterId === null ? undefined : letters.get(each.letterId)
    // Otherwise somebody has acted on it in the meantime.
    if (row?.letterDue === true && row.key === each.row.key) add(all, { ...each, row }, letter)
  }
  return all
}

function add(all: Mutable<Differences>, each: RowAndLetter, letter: CaseRow | undefined): void {
  const { row } = each
  const isPending = letter?.status === STATUS.Pending
  switch (stateOf(row)) {
    case 'dead':
      if (letter === undefined) {
        all.capture.push(each)
        return
      }
      if (!isPending) all.reopen.push({ row, letter })
      break
    case 'processed':
      if (letter !== undefined && isPending) all.complete.push({ row, letter })
      else if (letter !== undefined) all.confirm.push(letter.id)
      break
    case 'given up':
      if (letter !== undefined && isPending) {
        all.layBack.push({ letterId: letter.id, id: row.id, key: row.key })
        return
      }
      if (row.orderingKey !== null) all.letGo.push({ tenantId: row.tenantId, orderingKey: row.orderingKey })
      break
    case 'pending':
      break
  }
  all.agreeing.push({ row, letterId: letter?.id ?? null })
}

function stateOf({ deadAt, isProcessed }: OutboxRow): 'dead' | 'given up' | 'processed' | 'pending' {
  if (deadAt !== null) return isProcessed ? 'given up' : 'dead'
  return isProcessed ? 'processed' : 'pending'
}
