/** What lies in each partition, items and letters, counted and compared with the books, sums of instants included. */
import type { Integer } from '../db/database.ts'
import { type PartitionCounts, readCounts } from '../queues/counts.ts'
import { SHELF } from '../queues/schema.ts'
import type { Audit, Finding } from './invariant.ts'
import { type ItemGroup, itemGroups, itemSteps, LETTERS, read, rowsAlong } from './walk.ts'

/**
 * Scheduled ones count neither as queued nor in the ages. Instants are added up in halves: whole they would exceed
 * 64 bits.
 */
const tally = (createdAt: string): string => `
  count(*) AS found,
  count(CASE WHEN leased = 1 THEN 1 END) AS leased,
  sum(CASE WHEN shelf <> ${SHELF.scheduled} THEN ${createdAt} / 1000000 END) AS created_s,
  sum(CASE WHEN shelf <> ${SHELF.scheduled} THEN ${createdAt} % 1000000 END) AS created_us,
  sum(CASE WHEN leased = 1 THEN lease_deadline / 1000000 END) AS deadline_s,
  sum(CASE WHEN leased = 1 THEN lease_deadline % 1000000 END) AS deadline_us`

/** Items of one step per part and shelf. */
const countItems = itemGroups(
  'countItems',
  ', leased, created_at, lease_deadline',
  `max(id) AS last, ${tally('created_at')}`,
)

/** Letters of a range that lie in a dead queue, per part and shelf. */
const countLying = read(
  'countLying',
  `SELECT part, shelf, max(serial) AS last, ${tally('laid_at')} FROM bartleby.letters
   WHERE id > $1 AND id <= $2 AND part IS NOT NULL GROUP BY part, shelf`,
)

interface Group extends ItemGroup {
  readonly leased: Integer
  readonly created_s: Integer | null
  readonly created_us: Integer | null
  readonly deadline_s: Integer | null
  readonly deadline_us: Integer | null
}

type Sheet = { -readonly [Key in keyof PartitionCounts]: PartitionCounts[Key] }

export async function* partitionCounts(audit: Audit): AsyncGenerator<Finding> {
  const found = new Map<number, Sheet>()
  for await (const groups of itemSteps<Group>(audit, countItems))
    for (const group of groups) add(sheetOf(found, group), group)
  for await (const group of rowsAlong<Group>(audit, LETTERS, countLying)) {
    const sheet = sheetOf(found, group)
    add(sheet, group)
    sheet.dead += Number(group.found)
  }
  // Parts of deleted queues are out of everybody's reach, and cleared away in the background.
  const parts = [...audit.partitions.keys()].sort((a, b) => a - b)
  const books = await readCounts(audit.session, parts)
  for (const [i, part] of parts.entries()) {
    const sheet = books[i]
    if (sheet !== undefined) yield* differences(audit, part, sheet, found.get(part) ?? blank())
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

function sheetOf(found: Map<number, Sheet>, { part }: Group): Sheet {
  const sheet = found.get(Number(part)) ?? blank()
  found.set(Number(part), sheet)
  return sheet
}

function add(sheet: Sheet, group: Group): void {
  const shelf = Number(group.shelf)
  const leased = Number(group.leased)
  if (shelf === SHELF.scheduled) sheet.scheduled += Number(group.found)
  else if (shelf === SHELF.held) sheet.held += Number(group.found)
  else {
    sheet.ready += Number(group.found) - leased
    sheet.leased += leased
  }
  sheet.createdSumUs += instants(group.created_s, group.created_us)
  sheet.deadlineSumUs += instants(group.deadline_s, group.deadline_us)
}

const instants = (seconds: Integer | null, micros: Integer | null): bigint =>
  BigInt(seconds ?? 0) * 1_000_000n + BigInt(micros ?? 0)

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
  { partitions }: Audit,
  part: number,
  books: PartitionCounts,
  found: PartitionCounts,
): Iterable<Finding> {
  const { queue = '', number: partition } = partitions.get(part) ?? {}
  for (const [key, count] of NAMES) {
    if (books[key] === found[key]) continue
    yield {
      what: `'${count}' of partition ${partition} of queue '${queue}' is ${found[key]}, and the books say ${books[key]}`,
      row: { queue, partition, part, count, books: books[key], found: found[key] },
    }
  }
}
