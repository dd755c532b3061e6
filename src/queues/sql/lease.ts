/** lease and extend: items belong to a client until a deadline. */
import { type Instant, later } from '../../core/clock.ts'
import { type StoredContent, storedPayload, storedText } from '../../core/content.ts'
import { extendLetterLeases, leaseLetters } from '../../letters/in-dead-queue/move.ts'
import { readySerials } from '../../letters/in-dead-queue/read.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Integer, sql, type Transaction } from '../../store/database.ts'
import { countedFrom } from '../counts.ts'
import { insistOn } from '../cycles/cycle.ts'
import type { ItemContent } from '../queue.ts'
import type { Partition } from '../records.ts'
import { SHELF } from '../schema.ts'

/** Delay before an ended lease is offered again: clients count from when the reply reached them, and would see items out of order. */
export const LEASE_GRACE_US = 7_000n

export interface LeasedRow extends ItemContent {
  readonly serial: number
  readonly attempts: number
  /** The case that its failures are filed under. */
  readonly caseId: LetterId | null
  readonly isLetter: boolean
}

/** The limit of the wire and of PostgreSQL's int. An import may start there; counting on would fail every later lease. */
const MAX_ATTEMPTS = 2 ** 31 - 1

const BEHIND = `(part, shelf, id) > ($1, ${SHELF.queue}, $2) AND (part, shelf) <= ($1, ${SHELF.queue})`
const IS_READY = 'leased <> 1 AND (expire_at IS NULL OR expire_at >= $3)'
/**
 * The first `$4` ready items behind `$2`, in order. The limit is hidden in a subquery: PostgreSQL believes that a freshly filled queue has
 * hardly more rows, and would sort all of them in the first five leases of every connection.
 */
const ready = (columns: string): string => `SELECT ${columns} FROM bartleby.items INDEXED BY items_in_order
  WHERE ${BEHIND} AND ${IS_READY} ORDER BY part, shelf, id LIMIT (SELECT $4::bigint)`

const NEXT_ATTEMPT = `least(attempts, ${MAX_ATTEMPTS - 1}) + 1`
const CONTENT = 'case_id, encoding, kind, reference, payload'

/**
 * Leases the first `$4` ready items behind serial `$2`, scanning the primary key of one partition. Rows locked or just changed by another
 * server are skipped: the update takes the locked rows by ctid and is heap-only (see schema.ts). SQLite reads first, because it copies
 * aside what an update returns.
 */
const leaseReady = sql('items.lease', {
  postgres: `
    UPDATE bartleby.items SET leased = 1, lease_deadline = $5, attempts = ${NEXT_ATTEMPT}
    WHERE ctid = ANY(ARRAY(${ready('ctid')} FOR UPDATE SKIP LOCKED))
    RETURNING id, attempts, ${CONTENT}`,
  sqlite: ready(`id, ${NEXT_ATTEMPT} AS attempts, ${CONTENT}`),
})

/** Serials as `formatRuns` writes them; as single runs where they are not neighbours. */
const RUNS = `CASE WHEN taken.last - taken.first + 1 = taken.items THEN taken.first || ',' || taken.last
  ELSE (SELECT string_agg(id || ',' || id, ',' ORDER BY id) FROM picked) END`

/** The same with the note for the sweep, due at `$6`, and the change of the counts. */
const leaseCounted = sql('items.leaseCounted', {
  postgres: `
    WITH picked AS (${ready('id, ctid')} FOR UPDATE SKIP LOCKED),
    taken AS (SELECT count(*) AS items, min(id) AS first, max(id) AS last FROM picked),
    noted AS (
      INSERT INTO bartleby.lease_batches (part, due_at, deadline, runs)
      SELECT $1, $6, $5, ${RUNS} FROM taken WHERE taken.items > 0
    ), counted AS (
      ${countedFrom('taken WHERE taken.items > 0', {
        ready: '- taken.items',
        leased: 'taken.items',
        deadline_s: 'taken.items * ($5::bigint / 1000000)',
        deadline_us: 'taken.items * ($5::bigint % 1000000)',
      })}
    )
    UPDATE bartleby.items SET leased = 1, lease_deadline = $5, attempts = ${NEXT_ATTEMPT}
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM picked))
    RETURNING id, attempts, ${CONTENT}`,
})

/** SQLite: leases the rows just read, up to `$4`. With one writer they are still all that is ready up to there. */
const markLeased = sql('items.markLeased', {
  sqlite: `UPDATE items INDEXED BY items_in_order SET leased = 1, lease_deadline = $5, attempts = ${NEXT_ATTEMPT}
           WHERE part = $1 AND shelf = ${SHELF.queue} AND id > $2 AND id <= $4 AND ${IS_READY}`,
})

const insertBatch = sql(
  'leases.insert',
  'INSERT INTO bartleby.lease_batches (part, due_at, deadline, runs) VALUES ($1, $2, $3, $4)',
)

/** Touches no index. */
const extendLeased = sql(
  'items.extend',
  `UPDATE bartleby.items SET lease_deadline = $3
   WHERE part = $1 AND shelf = ${SHELF.queue} AND id = ANY($2::bigint[]) AND leased = 1`,
)

interface Lease {
  readonly after: number
  readonly limit: number
  readonly now: Instant
  readonly deadline: Instant
}

/** Stored content of an item or a letter, and its deliveries. */
export interface ContentRow extends StoredContent {
  readonly attempts: Integer
}

/** Leases up to `limit` ready items behind `after`, ascending; `counted` where the statement counts them itself. */
export async function leaseItems(
  tx: Transaction,
  { part, holdsLetters }: Partition,
  lease: Lease,
  counted = false,
): Promise<LeasedRow[]> {
  if (counted) {
    const { after, now, limit, deadline } = lease
    const due = later(deadline, LEASE_GRACE_US)
    const rows = await tx.rows<ItemRow>(leaseCounted, part, after, now, limit, deadline, due)
    return rows.map(toLeasedRow).sort((a, b) => a.serial - b.serial)
  }
  const leased = holdsLetters ? await leaseBoth(tx, part, lease) : await leaseOnlyItems(tx, part, lease)
  if (leased.length === 0) return []
  leased.sort((a, b) => a.serial - b.serial)
  noteLease(
    tx,
    part,
    leased.map(({ serial }) => serial),
    lease.deadline,
  )
  return leased
}

async function leaseOnlyItems(tx: Transaction, part: number, lease: Lease): Promise<LeasedRow[]> {
  const { after, limit, now, deadline } = lease
  const isOne = tx.dialect === 'postgres'
  const rows = await tx.rows<ItemRow>(leaseReady, part, after, now, limit, ...(isOne ? [deadline] : []))
  const last = rows.at(-1)
  if (!isOne && last !== undefined) await tx.run(markLeased, part, after, now, last.id, deadline)
  return rows.map(toLeasedRow)
}

type ItemRow = ContentRow & { readonly id: Integer; readonly case_id: Integer | null }

const toLeasedRow = (row: ItemRow): LeasedRow => ({
  ...contentOf(row),
  serial: Number(row.id),
  caseId: row.case_id === null ? null : letterId(row.case_id),
  isLetter: false,
})

/** Serials that `leaseReady` would take. */
const readReady = sql('items.ready', ready('id'))

/** Leases letters and items of a dead queue in serial order: first how far the lease reaches in both, then each takes its share. */
async function leaseBoth(tx: Transaction, part: number, lease: Lease): Promise<LeasedRow[]> {
  const items = await tx.rows<{ id: Integer }>(readReady, part, lease.after, lease.now, lease.limit)
  const itemSerials = items.map((row) => Number(row.id))
  const letterSerials = await readySerials(tx, part, lease.after, lease.limit)
  const reach = [...itemSerials, ...letterSerials].sort((a, b) => a - b)[lease.limit - 1] ?? Infinity
  const wantedItems = itemSerials.filter((serial) => serial <= reach).length
  const wantedLetters = letterSerials.filter((serial) => serial <= reach)
  const leased = wantedItems === 0 ? [] : await leaseOnlyItems(tx, part, { ...lease, limit: wantedItems })
  if (wantedLetters.length === 0) return leased
  const letters = await leaseLetters(tx, part, wantedLetters, lease.deadline)
  return [
    ...leased,
    ...letters.map((row) => ({
      ...contentOf(row),
      serial: Number(row.serial),
      caseId: null,
      isLetter: true,
    })),
  ]
}

export const contentOf = (row: ContentRow) => ({
  attempts: Number(row.attempts),
  encoding: storedText(row.encoding),
  kind: storedText(row.kind),
  reference: storedText(row.reference),
  payload: storedPayload(row.payload),
})

/** Serials must ascend. */
export async function extendLeases(
  tx: Transaction,
  { part, holdsLetters }: Partition,
  serials: readonly number[],
  deadline: Instant,
): Promise<void> {
  const items = await tx.run(extendLeased, part, serials, deadline)
  const letters = holdsLetters ? await extendLetterLeases(tx, part, serials, deadline) : 0
  insistOn(serials.length, items + letters)
  noteLease(tx, part, serials, deadline)
}

/** Notes for the sweep when these leases end. Serials must ascend. */
export function noteLease(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  deadline: Instant,
): void {
  tx.atCommit(insertBatch, part, later(deadline, LEASE_GRACE_US), deadline, formatRuns(serials))
}

/** Ascending serials as runs, first and last of each: 7, 8, 9 and 12 are [7, 9] and [12, 12]. */
export function runsOf(serials: readonly number[]): (readonly [first: number, last: number])[] {
  const runs: [number, number][] = []
  for (const serial of serials) {
    const latest = runs.at(-1)
    if (latest?.[1] === serial - 1) latest[1] = serial
    else runs.push([serial, serial])
  }
  return runs
}

/** Runs as text: "7,9,12,12". A lease of neighbours is one run, whatever its size. */
export const formatRuns = (serials: readonly number[]): string => runsOf(serials).join(',')

export function parseRuns(text: string): number[] {
  const serials: number[] = []
  const bounds = text.split(',').map(Number)
  for (let i = 0; i + 1 < bounds.length; i += 2) {
    const last = bounds[i + 1] ?? 0
    for (let serial = bounds[i] ?? 1; serial <= last; serial++) serials.push(serial)
  }
  return serials
}
