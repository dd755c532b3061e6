/**
 * What has to happen so that a row and its letter agree.
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
import type { CaseRow } from '../../letters/locked.ts'
import type { OutboxRow } from '../sql/letters.ts'
import type { RowAndLetter } from './rows-of-letters.ts'

type Difference = 'none' | 'capture' | 'reopen' | 'complete' | 'confirm' | 'lay back' | 'let go'

/** A row with its letter, where it has one, and what has to happen to them. */
export interface Compared extends Omit<RowAndLetter, 'letterId'> {
  readonly letter: CaseRow | null
  readonly difference: Difference
}

/** `letters` are those that were found, as they are while they are locked; `rows` are the rows of these, likewise. */
export function compare(
  found: readonly RowAndLetter[],
  letters: ReadonlyMap<LetterId, CaseRow>,
  rows: ReadonlyMap<string, OutboxRow>,
): readonly Compared[] {
  return found.flatMap(({ row: seen, letterId, sourceId }) => {
    const row = letterId === null ? seen : rows.get(seen.id)
    const letter = letterId === null ? null : (letters.get(letterId) ?? null)
    // Otherwise somebody has acted on it in the meantime.
    if (row?.letterDue !== true || row.key !== seen.key) return []
    return [{ row, letter, sourceId, difference: differenceOf(row, letter) }]
  })
}

function differenceOf({ deadAt, isProcessed }: OutboxRow, letter: CaseRow | null): Difference {
  const isPending = letter?.status === STATUS.Pending
  if (deadAt !== null && isProcessed) return isPending ? 'lay back' : 'let go'
  if (deadAt !== null && letter === null) return 'capture'
  if (deadAt !== null) return isPending ? 'none' : 'reopen'
  if (!isProcessed || letter === null) return 'none'
  return isPending ? 'complete' : 'confirm'
}
