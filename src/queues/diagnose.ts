/** Why a request about leased items cannot be granted: the first problem, in the order of its ids. */
import { type BartlebyError, failure } from '../core/errors.ts'
import { checkKsuid, idFromSerial, serialFromId } from '../core/ksuid.ts'
import type { Session } from '../db/database.ts'
import type { Partition } from './records.ts'
import { readLeaseMarks } from './sql/inspect.ts'

export type NotLeasedCode = 'complete_not_leased' | 'retry_not_leased' | 'extend_not_leased'

/** The serials of the ids, or null when an id is malformed, foreign to the partition or repeated. */
export function serialsOf(partition: Partition, ids: readonly string[]): number[] | null {
  const serials: number[] = []
  for (const id of ids) {
    if (checkKsuid(id) !== null) return null
    const serial = serialFromId(partition.idPrefix, id)
    if (serial === null) return null
    serials.push(serial)
  }
  return new Set(serials).size === serials.length ? serials : null
}

/** The first problem with items that are known by their serials. */
export const problemWithSerials = (
  session: Session,
  partition: Partition,
  serials: readonly number[],
  notLeased: NotLeasedCode,
): Promise<BartlebyError | null> =>
  firstProblem(
    session,
    partition,
    serials.map((serial) => idFromSerial(partition.idPrefix, serial)),
    notLeased,
  )

/** Checks form, existence and lease of each id in turn; null when there is nothing wrong (any more). */
export async function firstProblem(
  session: Session,
  partition: Partition,
  ids: readonly string[],
  notLeased: NotLeasedCode,
): Promise<BartlebyError | null> {
  const wellFormed = ids.filter((id) => checkKsuid(id) === null)
  const serials = wellFormed.flatMap((id) => serialFromId(partition.idPrefix, id) ?? [])
  const marks = await readLeaseMarks(session, partition, serials)
  const seen = new Set<number>()
  for (const id of ids) {
    const reason = checkKsuid(id)
    if (reason !== null) return failure('item_id_malformed', { id, reason })
    const serial = serialFromId(partition.idPrefix, id)
    if (serial === null || seen.has(serial)) return failure('item_unknown', { id })
    seen.add(serial)
    const leased = marks.get(serial)
    if (leased === undefined) return failure('item_unknown', { id })
    if (!leased) return failure(notLeased, { id })
  }
  return null
}
