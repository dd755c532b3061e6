/** Why an act on a letter is not possible now: what the server would say, before it is asked. */
import type { LetterItem } from '../api/types.ts'

/** A letter of a list, or with its case file. */
export type Refusable = Pick<LetterItem, 'status' | 'resolution' | 'confirmedAtUtc'> & {
  readonly leased?: boolean
}

const LEASED = 'Leased by a consumer of its dead queue: try again when the lease ends.'

/** Of a retry, an edit and a dry run; null: it is possible. */
export function retryRefusal({ status, resolution, confirmedAtUtc, leased }: Refusable): string | null {
  if (status === 'Pending') return leased === true ? LEASED : null
  if (status === 'Resolved' && resolution === 'retry') {
    return confirmedAtUtc === null
      ? 'Already sent: wait for its outcome, or restore it first.'
      : 'Sent and processed: restore it first to send it again.'
  }
  return `${status}: restore it first.`
}

export function discardRefusal({ status, leased }: Refusable): string | null {
  if (status === 'Pending') return leased === true ? LEASED : null
  return `${status}: only pending letters can be discarded.`
}

export const restoreRefusal = ({ status }: Refusable): string | null =>
  status === 'Pending' ? 'Pending: nothing to restore.' : null
