/** Single letters by key or number, with their case files. */
import { storedPayload, storedText } from '../../core/content.ts'
import { formatRowKey, keptRowKey, keyNumber, parseRowKey } from '../../core/row-key.ts'
import { type Integer, type Session, sql, type Transaction } from '../../store/database.ts'
import {
  at,
  flag,
  integer,
  oneOf,
  orNull,
  type RowOf,
  type RowShape,
  rowShape,
  text,
} from '../../store/row.ts'
import { kindOf, type SourceName } from '../kinds.ts'
import {
  type Act,
  type DeadQueuePosition,
  type DeathReason,
  type Failure,
  type Letter,
  type LetterId,
  type LetterStatus,
  type LetterSummary,
  letterId,
  STATUSES,
} from '../letter.ts'
import { lockLetters } from '../locked.ts'
import type { Drawer, DrawerLabels } from '../numbers/find-drawers.ts'

const SUMMARY_FIELDS = {
  id: letterId,
  capturedAt: at,
  shortKey: orNull(integer),
  firstFailureAt: at,
  lastFailureAt: at,
  resolvedAt: orNull(at),
  confirmedAt: orNull(at),
  dequeueCount: integer,
  status: statusOf,
  engine: text,
  sourceId: text,
  instanceId: orNull(text),
  correlationId: orNull(text),
  reason: oneOf<DeathReason>(),
  errorClass: text,
  errorMessage: text,
  resolution: orNull(oneOf<Act>()),
  resolvedBy: orNull(text),
  notes: orNull(text),
  deadQueue: orNull(text),
  drawer: integer,
} as const
const SUMMARY = rowShape(SUMMARY_FIELDS)

export const POSITION = {
  id: letterId,
  deadQueue: orNull(text),
  part: orNull(integer),
  shelf: orNull(integer),
  serial: orNull(integer),
  laidAt: orNull(at),
  leased: flag,
  leaseDeadline: orNull(at),
} as const

/** null: in no dead queue. */
export const positionOf = ({
  part,
  shelf,
  serial,
  laidAt,
  leased,
  leaseDeadline,
}: RowOf<RowShape<typeof POSITION>>): DeadQueuePosition | null =>
  part === null || shelf === null || serial === null || laidAt === null
    ? null
    : { part, shelf, serial, laidAt, leased, leaseDeadline }

const CASE = {
  version: integer,
  itemCreatedAt: orNull(at),
  /** null unless Expired. */
  expiredAt: orNull(at),
  errorStack: orNull(text),
  failedBy: orNull(text),
  /** Deliveries named by the report of its last failure; null if not reported. */
  reportedCount: orNull(integer),
  /** The item of its latest retry, and its queue. */
  sentAs: orNull(text),
  sentTo: orNull(text),
  redrive: orNull(integer),
} as const
export type CaseFields = RowOf<RowShape<typeof CASE>>

const LETTER = rowShape({
  ...SUMMARY_FIELDS,
  ...POSITION,
  partition: orNull(integer),
  ...CASE,
  encoding: storedText,
  kind: storedText,
  reference: storedText,
  headers: (bytes: Uint8Array | null) => bytes,
  payload: storedPayload,
  edited: flag,
  editedPayload: storedPayload,
  editedEncoding: orNull(storedText),
  editedKind: orNull(storedText),
  editedReference: orNull(storedText),
})

type Label = Pick<Drawer, 'source' | 'queue' | 'fingerprint'>

/** By primary key, with the label of its drawer. */
const readOne = sql(
  'letters.read',
  `SELECT ${LETTER.columns}, (SELECT source FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS source,
     (SELECT queue FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS queue,
     (SELECT fingerprint FROM bartleby.signatures WHERE signatures.id =
       (SELECT signature FROM bartleby.drawers WHERE drawers.id = letters.drawer)) AS fingerprint
   FROM bartleby.letters WHERE id = $1`,
  { bigints: true },
)

/** By primary key; the rest of the row key must match. */
const findByNumber = sql(
  'letters.byNumber',
  `SELECT id FROM bartleby.letters
   WHERE id = $1 AND engine = $2 AND coalesce(instance_id, source_id) = $3 AND captured_at = $4 AND short_key IS NULL`,
  { bigints: true },
)

/** Keys of earlier versions: on letters_by_short_key or, where the source id is the instance, on letters_by_source. */
const findByShortKey = sql(
  'letters.byShortKey',
  `SELECT id FROM bartleby.letters
   WHERE engine = $1 AND coalesce(instance_id, '') = $2 AND captured_at = $3 AND short_key = 1 AND instance_id IS NOT NULL
   UNION ALL
   SELECT id FROM bartleby.letters
   WHERE engine = $1 AND source_id = $2 AND captured_at = $3 AND short_key = 1 AND instance_id IS NULL`,
  { bigints: true },
)

/** By primary key, without large columns; the source by that of the drawer. */
const readMany = sql(
  'letters.summaries',
  `SELECT ${SUMMARY.columns}, (SELECT source FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS source
   FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

export async function findLetter(session: Session, engine: string, rowKey: string): Promise<LetterId | null> {
  const key = parseRowKey(rowKey)
  // PostgreSQL refuses U+0000 in texts; no letter's key has one.
  if (key === null || `${engine}${key.name}`.includes('\0')) return null
  const { name, at, number } = key
  const [row] = await (number === null
    ? session.rows<{ id: Integer }>(findByShortKey, engine, name, at)
    : session.rows<{ id: Integer }>(findByNumber, number, engine, name, at))
  return row === undefined ? null : letterId(row.id)
}

export async function readLetter(session: Session, engine: string, rowKey: string): Promise<Letter | null> {
  const id = await findLetter(session, engine, rowKey)
  return id === null ? null : readLetterById(session, id)
}

export async function readLetterById(session: Session, id: LetterId): Promise<Letter | null> {
  const [row] = await session.rows<Label>(readOne, id)
  return row === undefined ? null : toLetter(row)
}

export async function lockLetter(tx: Transaction, id: LetterId): Promise<Letter | null> {
  // A statement of its own: one that waited for the lock would see the new letter and old drawers. Both travel together.
  const [, letter] = await Promise.all([lockLetters(tx, [id]), readLetterById(tx, id)])
  return letter
}

/** In the given order; letters that are gone are left out. */
export async function readSummaries(
  session: Session,
  ids: readonly LetterId[],
  labels: DrawerLabels,
): Promise<LetterSummary[]> {
  const letters = await readUnlabelled(session, ids)
  const drawers = await labels.of(session, [...new Set(letters.map(({ drawer }) => drawer))])
  const found = new Map(drawers.map((drawer) => [drawer.number, drawer]))
  return letters.flatMap(({ drawer, ...letter }) => {
    const label = found.get(drawer)
    return label === undefined ? [] : labelled(letter, label)
  })
}

/** A letter without the fields of its drawer. */
type Unlabelled = Omit<LetterSummary, 'source' | 'originalQueue' | 'signature'> & { readonly drawer: number }

export async function readUnlabelled(session: Session, ids: readonly LetterId[]): Promise<Unlabelled[]> {
  if (ids.length === 0) return []
  const rows = await session.rows<Sourced>(readMany, ids)
  const found = new Map(rows.map(toUnlabelled).map((letter) => [letter.id, letter]))
  return ids.flatMap((id) => found.get(id) ?? [])
}

/** The newest are shown. */
const MAX_FAILURES = 1_000

const FAILURE = rowShape({
  number: integer,
  failedAt: at,
  failedBy: orNull(text),
  errorClass: text,
  errorMessage: text,
  errorStack: orNull(text),
})

/** The newest, by primary key. */
const readAttempts = sql(
  'letterAttempts.read',
  `SELECT ${FAILURE.columns} FROM bartleby.letter_attempts
   WHERE letter_id = $1 ORDER BY letter_id DESC, number DESC LIMIT $2`,
  { bigints: true },
)

/** Oldest first; the last one stands on the letter. */
export async function readFailures(session: Session, letter: Letter): Promise<Failure[]> {
  const before = (await FAILURE.all(session, readAttempts, letter.id, MAX_FAILURES - 1)).reverse()
  const { failedBy, errorClass, errorMessage, errorStack, lastFailureAt } = letter
  const number = (before.at(-1)?.number ?? 0) + 1
  return [...before, { number, failedAt: lastFailureAt, failedBy, errorClass, errorMessage, errorStack }]
}

interface Sourced {
  readonly source: SourceName
}

function toUnlabelled(row: Sourced): Unlabelled {
  const { capturedAt, shortKey, ...letter } = SUMMARY.read(row)
  const instanceId = letter.instanceId ?? letter.sourceId
  const kept = kindOf(row.source).keepsRowKeys === true ? keptRowKey(letter.engine, letter.sourceId) : null
  return {
    ...letter,
    rowKey:
      kept ?? formatRowKey({ name: instanceId, at: capturedAt, number: keyNumber(letter.id, shortKey) }),
    instanceId,
    correlationId: letter.correlationId ?? letter.sourceId,
  }
}

const labelled = (
  letter: Omit<Unlabelled, 'drawer'>,
  { source, queue, fingerprint }: Label,
): LetterSummary => ({
  ...letter,
  source,
  originalQueue: queue === '' ? null : queue,
  signature: fingerprint,
})

function toLetter(row: Label): Letter {
  const letter = LETTER.read(row)
  const { edited, editedEncoding, editedKind, editedReference } = letter
  return {
    ...letter,
    ...labelled(toUnlabelled(row), row),
    originalPartition: letter.partition,
    editedPayload: edited ? letter.editedPayload : null,
    editedHeaders: {
      ...(editedEncoding === null ? {} : { encoding: editedEncoding }),
      ...(editedKind === null ? {} : { kind: editedKind }),
      ...(editedReference === null ? {} : { reference: editedReference }),
    },
    position: positionOf(letter),
  }
}

function statusOf(status: Integer): LetterStatus {
  const name = STATUSES[Number(status)]
  if (name === undefined) throw new Error(`a letter has the unknown status ${status}`)
  return name
}
