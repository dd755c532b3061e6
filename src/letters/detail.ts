/** Letters as the store keeps them, and as everybody else sees them: one by its key or number, with its case file. */
import { type Instant, instant } from '../core/clock.ts'
import { storedPayload, storedText } from '../core/content.ts'
import { formatRowKey, parseRowKey } from '../core/row-key.ts'
import { type Integer, type Session, sql, type Transaction } from '../db/database.ts'
import {
  type Act,
  type DeathReason,
  type Failure,
  type HeaderEdit,
  type Letter,
  type LetterId,
  type LetterStatus,
  type LetterSummary,
  letterId,
  type SourceName,
  STATUSES,
} from './letter.ts'
import { lockLetters } from './locked.ts'

const columns = (names: string): string => names.replaceAll(/\w+/g, 'letters.$&')

/** Drawers and signatures by primary key; a join may begin with them and meet the letters of a whole drawer. */
const SUMMARY = `${columns(`id, captured_at, first_failure_at, last_failure_at, resolved_at, confirmed_at, dequeue_count,
  status, engine, source_id, instance_id, correlation_id, reason, error_class, error_message, resolution, resolved_by,
  notes, dead_queue`)},
  (SELECT source FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS source,
  (SELECT queue FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS queue,
  (SELECT fingerprint FROM bartleby.signatures WHERE signatures.id =
    (SELECT signature FROM bartleby.drawers WHERE drawers.id = letters.drawer)) AS fingerprint`

const FULL = `${SUMMARY}, ${columns(`item_created_at, expired_at, laid_at, lease_deadline, serial, part, drawer, version, partition, shelf,
  leased, edited, error_stack, failed_by, reported_count, sent_as, sent_to, redrive, encoding, kind, reference, headers, payload,
  edited_payload, edited_encoding, edited_kind, edited_reference`)}`

interface SummaryRow {
  readonly id: Integer
  readonly captured_at: Integer
  readonly first_failure_at: Integer
  readonly last_failure_at: Integer
  readonly resolved_at: Integer | null
  readonly confirmed_at: Integer | null
  readonly dequeue_count: Integer
  readonly status: Integer
  readonly engine: string
  readonly source_id: string
  readonly instance_id: string | null
  readonly correlation_id: string | null
  readonly reason: DeathReason
  readonly error_class: string
  readonly error_message: string
  readonly resolution: Act | null
  readonly resolved_by: string | null
  readonly notes: string | null
  readonly dead_queue: string | null
  readonly source: SourceName
  readonly queue: string
  readonly fingerprint: string
}

interface LetterRow extends SummaryRow {
  readonly item_created_at: Integer | null
  readonly expired_at: Integer | null
  readonly laid_at: Integer | null
  readonly lease_deadline: Integer | null
  readonly serial: Integer | null
  readonly part: Integer | null
  readonly drawer: Integer
  readonly version: Integer
  readonly partition: Integer | null
  readonly shelf: Integer | null
  readonly leased: Integer
  readonly edited: Integer
  readonly error_stack: string | null
  readonly failed_by: string | null
  readonly reported_count: Integer | null
  readonly sent_as: string | null
  readonly sent_to: string | null
  readonly redrive: Integer | null
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array | null
  readonly edited_payload: Uint8Array | null
  readonly edited_encoding: Uint8Array | null
  readonly edited_kind: Uint8Array | null
  readonly edited_reference: Uint8Array | null
}

/** One row by primary key. */
const readOne = sql('letters.read', `SELECT ${FULL} FROM bartleby.letters WHERE id = $1`, {
  bigints: true,
})

const OF_SOURCE = 'engine = $1 AND source_id = $2 AND instance_id IS NULL AND captured_at = $3'

/**
 * By letters_by_row_key or, for a letter whose source id stands for its instance, by letters_by_source. PostgreSQL is
 * asked for a range in an order that only the first has; it might read all letters of the instance.
 */
const findByKey = sql(
  'letters.byRowKey',
  {
    postgres: `
      SELECT * FROM (
        SELECT id FROM bartleby.letters
        WHERE engine = $1 AND instance_id = $2 AND captured_at >= $3 AND captured_at <= $3
        ORDER BY captured_at LIMIT 1) AS keyed
      UNION ALL SELECT id FROM bartleby.letters WHERE ${OF_SOURCE}`,
    sqlite: `
      SELECT id FROM letters INDEXED BY letters_by_row_key WHERE engine = $1 AND instance_id = $2 AND captured_at = $3
      UNION ALL SELECT id FROM letters WHERE ${OF_SOURCE}`,
  },
  { bigints: true },
)

/** Rows by primary key, without what is large. */
const readMany = sql(
  'letters.summaries',
  `SELECT ${SUMMARY} FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** The number of the letter with this row key in its engine. */
export async function findLetter(session: Session, engine: string, rowKey: string): Promise<LetterId | null> {
  const key = parseRowKey(rowKey)
  // PostgreSQL takes no U+0000 in a text; no key of a letter has one.
  if (key === null || `${engine}${key.name}`.includes('\0')) return null
  const [row] = await session.rows<{ id: Integer }>(findByKey, engine, key.name, key.at)
  return row === undefined ? null : letterId(row.id)
}

/** The letter with this row key in its engine. */
export async function readLetter(session: Session, engine: string, rowKey: string): Promise<Letter | null> {
  const id = await findLetter(session, engine, rowKey)
  return id === null ? null : readLetterById(session, id)
}

/** The letter with this number. */
export async function readLetterById(session: Session, id: LetterId): Promise<Letter | null> {
  const [row] = await session.rows<LetterRow>(readOne, id)
  return row === undefined ? null : toLetter(row)
}

/** The letter, which nobody else can change before the transaction ends. */
export async function lockLetter(tx: Transaction, id: LetterId): Promise<Letter | null> {
  // Read by a statement of its own: one that waited for the lock would see the letter as it is by then, and drawers as
  // they were before. Both travel together.
  const [, letter] = await Promise.all([lockLetters(tx, [id]), readLetterById(tx, id)])
  return letter
}

/** What lists show of these letters, in the order given; letters that are gone are left out. */
export async function readSummaries(session: Session, ids: readonly LetterId[]): Promise<LetterSummary[]> {
  if (ids.length === 0) return []
  const rows = await session.rows<SummaryRow>(readMany, ids)
  const found = new Map(rows.map((row) => [letterId(row.id), toSummary(row)]))
  return ids.flatMap((id) => found.get(id) ?? [])
}

/** More failures than this are not shown: the newest are. */
const MAX_FAILURES = 1_000

/** The newest of a letter, by primary key. */
const readAttempts = sql(
  'letterAttempts.read',
  `SELECT number, failed_at, failed_by, error_class, error_message, error_stack FROM bartleby.letter_attempts
   WHERE letter_id = $1 ORDER BY letter_id DESC, number DESC LIMIT $2`,
  { bigints: true },
)

/** Every failure on file, the oldest first; the last is the one that stands on the letter. */
export async function readFailures(session: Session, letter: Letter): Promise<Failure[]> {
  const rows = await session.rows<{
    number: Integer
    failed_at: Integer
    failed_by: string | null
    error_class: string
    error_message: string
    error_stack: string | null
  }>(readAttempts, letter.id, MAX_FAILURES - 1)
  const before = rows.reverse().map((row) => ({
    number: Number(row.number),
    failedAt: at(row.failed_at),
    failedBy: row.failed_by,
    errorClass: row.error_class,
    errorMessage: row.error_message,
    errorStack: row.error_stack,
  }))
  const { failedBy, errorClass, errorMessage, errorStack, lastFailureAt } = letter
  const number = (before.at(-1)?.number ?? 0) + 1
  return [...before, { number, failedAt: lastFailureAt, failedBy, errorClass, errorMessage, errorStack }]
}

const at = (value: Integer): Instant => instant(BigInt(value))
const atOrNull = (value: Integer | null): Instant | null => (value === null ? null : at(value))
const numberOrNull = (value: Integer | null): number | null => (value === null ? null : Number(value))

function toSummary(row: SummaryRow): LetterSummary {
  const instanceId = row.instance_id ?? row.source_id
  return {
    id: letterId(row.id),
    engine: row.engine,
    rowKey: formatRowKey(instanceId, at(row.captured_at)),
    source: row.source,
    sourceId: row.source_id,
    instanceId,
    originalQueue: row.queue === '' ? null : row.queue,
    correlationId: row.correlation_id ?? row.source_id,
    signature: row.fingerprint,
    status: statusOf(row.status),
    reason: row.reason,
    errorClass: row.error_class,
    errorMessage: row.error_message,
    dequeueCount: Number(row.dequeue_count),
    firstFailureAt: at(row.first_failure_at),
    lastFailureAt: at(row.last_failure_at),
    resolvedAt: atOrNull(row.resolved_at),
    resolvedBy: row.resolved_by,
    resolution: row.resolution,
    notes: row.notes,
    confirmedAt: atOrNull(row.confirmed_at),
    deadQueue: row.dead_queue,
  }
}

function toLetter(row: LetterRow): Letter {
  const { part, shelf, serial, laid_at } = row
  const lies = part !== null && shelf !== null && serial !== null && laid_at !== null
  return {
    ...toSummary(row),
    encoding: storedText(row.encoding),
    kind: storedText(row.kind),
    reference: storedText(row.reference),
    headers: row.headers,
    payload: storedPayload(row.payload),
    editedPayload: Number(row.edited) === 1 ? storedPayload(row.edited_payload) : null,
    editedHeaders: headerEdit(row),
    drawer: Number(row.drawer),
    version: Number(row.version),
    originalPartition: numberOrNull(row.partition),
    itemCreatedAt: atOrNull(row.item_created_at),
    expiredAt: atOrNull(row.expired_at),
    errorStack: row.error_stack,
    failedBy: row.failed_by,
    reportedCount: numberOrNull(row.reported_count),
    sentAs: row.sent_as,
    sentTo: row.sent_to,
    redrive: numberOrNull(row.redrive),
    place: lies
      ? {
          part: Number(part),
          shelf: Number(shelf),
          serial: Number(serial),
          leased: Number(row.leased) === 1,
          leaseDeadline: atOrNull(row.lease_deadline),
          laidAt: at(laid_at),
        }
      : null,
  }
}

function headerEdit(row: LetterRow): HeaderEdit {
  const edit: { -readonly [Name in keyof HeaderEdit]: HeaderEdit[Name] } = {}
  if (row.edited_encoding !== null) edit.encoding = storedText(row.edited_encoding)
  if (row.edited_kind !== null) edit.kind = storedText(row.edited_kind)
  if (row.edited_reference !== null) edit.reference = storedText(row.edited_reference)
  return edit
}

function statusOf(status: Integer): LetterStatus {
  const name = STATUSES[Number(status)]
  if (name === undefined) throw new Error(`a letter has the unknown status ${status}`)
  return name
}
