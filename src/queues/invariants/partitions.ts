/** I6 of queues: items and letters are counted per partition and compared with the stored counts. Partitions are few and read whole. */
import { idFromSerial } from '../../core/ksuid.ts'
import type { Audit, Finding, FoundRow, Invariant } from '../../letters/audit/invariant.ts'
import { batchesOf, read } from '../../letters/audit/walk.ts'
import { letterCounts } from '../../letters/invariants/counts.ts'
import { type Integer, sql } from '../../store/database.ts'
import { type PartitionCounts, readCounts } from '../counts.ts'
import { SHELF } from '../schema.ts'

interface AuditedPartition {
  readonly queue: string
  readonly number: number
  readonly idPrefix: string
}

/** By part, without deleted queues. */
export type Partitions = ReadonlyMap<number, AuditedPartition>

/** A few rows per queue. */
const readAll = sql(
  'verify.partitions',
  `SELECT part, number, id_prefix AS "idPrefix", name AS queue FROM bartleby.partitions JOIN bartleby.queues ON queues.id = queue_id`,
)

export async function readPartitions({ session }: Audit): Promise<Partitions> {
  const rows = await session.rows<AuditedPartition & { readonly part: Integer }>(readAll)
  return new Map(rows.map(({ part, ...partition }) => [Number(part), partition]))
}

/** Number of items by the stored counts, right or not. */
export async function countedItems(audit: Audit): Promise<number> {
  const counts = await readCounts(audit.session, [...(await readPartitions(audit)).keys()])
  return counts.reduce(
    (sum, { ready, leased, scheduled, held, dead }) => sum + ready + leased + scheduled + held - dead,
    0,
  )
}

export const isSerial = (serial: FoundRow[string]): boolean =>
  Number(serial) >= 0 && Number(serial) <= Number.MAX_SAFE_INTEGER

/** Queue, partition and id of an item, for people. */
export function itemRow(partitions: Partitions, part: FoundRow[string], serial: FoundRow[string]): FoundRow {
  const partition = partitions.get(Number(part))
  if (partition === undefined) return { part, serial }
  const { queue, number, idPrefix } = partition
  const name = isSerial(serial) ? { item: idFromSerial(idPrefix, Number(serial)) } : { serial }
  return { queue, partition: number, ...name }
}

const readItems = read(
  'itemPlaces',
  'SELECT part, shelf, leased, created_at, lease_deadline FROM bartleby.items',
)
const readLetters = read(
  'letterParts',
  'SELECT part, shelf, leased, laid_at AS created_at, lease_deadline FROM bartleby.letters WHERE part IS NOT NULL',
)

/** The other half of I6 is of letters. */
export const partitionCounts: Invariant = {
  ...letterCounts,
  rows: countedItems,
  check: miscounts,
}

type Sheet = { -readonly [Key in keyof PartitionCounts]: PartitionCounts[Key] }

async function* miscounts(audit: Audit): AsyncGenerator<Finding> {
  const found = new Map<number, Sheet>()
  for await (const items of batchesOf(audit, readItems))
    for (const item of items) add(sheetOf(found, item), item)
  for await (const letters of batchesOf(audit, readLetters))
    for (const letter of letters) {
      const sheet = sheetOf(found, letter)
      add(sheet, letter)
      sheet.dead++
    }
  // Parts of deleted queues are out of reach and removed in the background.
  const partitions = await readPartitions(audit)
  const parts = [...partitions.keys()].sort((a, b) => a - b)
  const stored = await readCounts(audit.session, parts)
  for (const [i, part] of parts.entries()) {
    const sheet = stored[i]
    if (sheet !== undefined) yield* differences(partitions, part, sheet, found.get(part) ?? blank())
  }
}

const blank = (): Sheet => ({
  ready: 0,
  leased: 0,
  scheduled: 0,
  held: 0,
  dead: 0,
  createdSumUs: 0n,
  deadlineSumUs: 0n,
})

function sheetOf(found: Map<number, Sheet>, { part }: FoundRow): Sheet {
  const sheet = found.get(Number(part)) ?? blank()
  found.set(Number(part), sheet)
  return sheet
}

const SHELVES: readonly number[] = Object.values(SHELF)

/** Scheduled items count neither as queued nor in the ages. An unknown shelf is found by nobody and counts as nothing. */
function add(sheet: Sheet, { shelf: place, leased, created_at, lease_deadline }: FoundRow): void {
  const shelf = place === null ? -1 : Number(place)
  if (!SHELVES.includes(shelf)) return
  if (shelf === SHELF.scheduled) sheet.scheduled++
  else {
    if (shelf === SHELF.held) sheet.held++
    else if (Number(leased) === 1) sheet.leased++
    else sheet.ready++
    sheet.createdSumUs += BigInt(created_at ?? 0)
  }
  if (Number(leased) === 1) sheet.deadlineSumUs += BigInt(lease_deadline ?? 0)
}

const NAMES: readonly (readonly [keyof PartitionCounts, string])[] = [
  ['ready', 'ready'],
  ['leased', 'leased'],
  ['scheduled', 'scheduled'],
  ['held', 'held'],
  ['dead', 'dead'],
  ['createdSumUs', 'sum of creation times'],
  ['deadlineSumUs', 'sum of lease deadlines'],
]

function* differences(
  partitions: Partitions,
  part: number,
  stored: PartitionCounts,
  found: PartitionCounts,
): Iterable<Finding> {
  const { queue = '', number: partition } = partitions.get(part) ?? {}
  for (const [key, count] of NAMES) {
    if (stored[key] === found[key]) continue
    yield {
      what: `'${count}' of partition ${partition} of queue '${queue}' is ${found[key]}, and the books say ${stored[key]}`,
      row: { queue, partition, part, count, books: stored[key], found: found[key] },
    }
  }
}
