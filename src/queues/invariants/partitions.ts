/** The partitions of all queues as checks need them: few, so they are known whole. */
import { idFromSerial } from '../../core/ksuid.ts'
import type { Audit, FoundRow } from '../../letters/audit/invariant.ts'
import { type Integer, sql } from '../../store/database.ts'
import { readCounts } from '../counts.ts'

/** A partition and its queue. */
interface AuditedPartition {
  readonly queue: string
  readonly number: number
  readonly idPrefix: string
}

/** By their parts. Parts of deleted queues are not among them. */
export type Partitions = ReadonlyMap<number, AuditedPartition>

/** All partitions with the names of their queues: a few for every queue. */
const readAll = sql(
  'verify.partitions',
  `SELECT part, number, id_prefix AS "idPrefix", name AS queue FROM bartleby.partitions JOIN bartleby.queues ON queues.id = queue_id`,
)

export async function readPartitions({ session }: Audit): Promise<Partitions> {
  const rows = await session.rows<AuditedPartition & { readonly part: Integer }>(readAll)
  return new Map(rows.map(({ part, ...partition }) => [Number(part), partition]))
}

/** How many items there are; whether the books are right is for a check to tell. */
export async function bookedItems(audit: Audit): Promise<number> {
  const counts = await readCounts(audit.session, [...(await readPartitions(audit)).keys()])
  return counts.reduce(
    (sum, { ready, leased, scheduled, held, dead }) => sum + ready + leased + scheduled + held - dead,
    0,
  )
}

/** Whether a serial is one that ids are made of. */
export const isSerial = (serial: FoundRow[string]): boolean =>
  Number(serial) >= 0 && Number(serial) <= Number.MAX_SAFE_INTEGER

/** Where an item lies, for people: its queue, its partition and its id. */
export function itemRow(partitions: Partitions, part: FoundRow[string], serial: FoundRow[string]): FoundRow {
  const partition = partitions.get(Number(part))
  if (partition === undefined) return { part, serial }
  const { queue, number, idPrefix } = partition
  const name = isSerial(serial) ? { item: idFromSerial(idPrefix, Number(serial)) } : { serial }
  return { queue, partition: number, ...name }
}
