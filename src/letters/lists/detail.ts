/** Letters as the store keeps them, and as everybody else sees them: one by its key or number, with its case file. */
import { storedPayload, storedText } from '../../core/content.ts'
import { formatRowKey, keyNumber, parseRowKey } from '../../core/row-key.ts'
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
import {
  type Act,
  type DeathReason,
  type Failure,
  type Letter,
  type LetterId,
  type LetterStatus,
  type LetterSummary,
  letterId,
  type Place,
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

/** How the row of a letter says where it lies. */
export const PLACED = {
  id: letterId,
  deadQueue: orNull(text),
  part: orNull(integer),
  shelf: orNull(integer),
  serial: orNull(integer),
  laidAt: orNull(at),
  leased: flag,
  leaseDeadline: orNull(at),
} as const

/** Where a letter lies; null when it is in no dead queue. */
export const placeOf = ({
  part,
  shelf,
  serial,
  laidAt,
  leased,
  leaseDeadline,
}: RowOf<RowShape<typeof PLACED>>): Place | null =>
  part === null || shelf === null || serial === null || laidAt === null
    ? null
    : { part, shelf, serial, laidAt, leased, leaseDeadline }

/** What stands on a letter as it is stored, beside what lists show. */
const CASE = {
  version: integer,
  itemCreatedAt: orNull(at),
  /** When it expired; null unless it is Expired. */
  expiredAt: orNull(at),
  errorStack: orNull(text),
  failedBy: orNull(text),
  /** The deliveries that the report of its last failure named; null when nobody reported it. */
  reportedCount: orNull(integer),
  /** The item that the latest retry made, and where. */
  sentAs: orNull(text),
  sentTo: orNull(text),
  /** The redrive that sent it, or is about to. */
  redrive: orNull(integer),
} as const
export type CaseFields = RowOf<RowShape<typeof CASE>>

const LETTER = rowShape({
  ...SUMMARY_FIELDS,
  ...PLACED,
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

/** One row by primary key, and the label of its drawer. */
const readOne = sql(
  'letters.read',
  `SELECT ${LETTER.columns}, (SELECT source FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS source,
     (SELECT queue FROM bartleby.drawers WHERE drawers.id = letters.drawer) AS queue,
     (SELECT fingerprint FROM bartleby.signatures WHERE signatures.id =
       (SELECT signature FROM bartleby.drawers WHERE drawers.id = letters.drawer)) AS fingerprint
   FROM bartleby.letters WHERE id = $1`,
  { bigints: true },
)

/** By primary key; the rest of its row key must be its own. */
const findByNumber = sql(
  'letters.byNumber',
  `SELECT id FROM bartleby.letters
   WHERE id = $1 AND engine = $2 AND coalesce(instance_id, source_id) = $3 AND captured_at = $4 AND short_key IS NULL`,
  { bigints: true },
)

/** Of an earlier version: by letters_by_short_key or, where its source id stands for its instance, by letters_by_source. */
const findByShortKey = sql(
  'letters.byShortKey',
  `SELECT id FROM bartleby.letters
   WHERE engine = $1 AND coalesce(instance_id, '') = $2 AND captured_at = $3 AND short_key = 1 AND instance_id IS NOT NULL
   UNION ALL
   SELECT id FROM bartleby.letters
   WHERE engine = $1 AND source_id = $2 AND captured_at = $3 AND short_key = 1 AND instance_id IS NULL`,
  { bigints: true },
)

/** Rows by primary key, without what is large. */
const readMany = sql(
  'letters.summaries',
  `SELECT ${SUMMARY.columns} FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** The number of the letter with this row key in its engine. */
export async function findLetter(session: Session, engine: string, rowKey: string): Promise<LetterId | null> {
  const key = parseRowKey(rowKey)
  // PostgreSQL takes no U+0000 in a text; no key of a letter has one.
  if (key === null || `${engine}${key.name}`.includes('\0')) return null
  const { name, at, number } = key
  const [row] = await (number === null
    ? session.rows<{ id: Integer }>(findByShortKey, engine, name, at)
    : session.rows<{ id: Integer }>(findByNumber, number, engine, name, at))
  return row === undefined ? null : letterId(row.id)
}

/** The letter with this row key in its engine. */
export async function readLetter(session: Session, engine: string, rowKey: string): Promise<Letter | null> {
  const id = await findLetter(session, engine, rowKey)
  return id === null ? null : readLetterById(session, id)
}

/** The letter with this number. */
export async function readLetterById(session: Session, id: LetterId): Promise<Letter | null> {
  const [row] = await session.rows<Label>(readOne, id)
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

/** What the row of a letter tells, and the number of the drawer that tells the rest. */
type Unlabelled = Omit<LetterSummary, 'source' | 'originalQueue' | 'signature'> & { readonly drawer: number }

/** The same without what is told by their drawers. */
export async function readUnlabelled(session: Session, ids: readonly LetterId[]): Promise<Unlabelled[]> {
  if (ids.length === 0) return []
  const rows = await session.rows<object>(readMany, ids)
  const found = new Map(rows.map(toUnlabelled).map((letter) => [letter.id, letter]))
  return ids.flatMap((id) => found.get(id) ?? [])
}

/** More failures than this are not shown: the newest are. */
const MAX_FAILURES = 1_000

const FAILURE = rowShape({
  number: integer,
  failedAt: at,
  failedBy: orNull(text),
  errorClass: text,
  errorMessage: text,
  errorStack: orNull(text),
})

/** The newest of a letter, by primary key. */
const readAttempts = sql(
  'letterAttempts.read',
  `SELECT ${FAILURE.columns} FROM bartleby.letter_attempts
   WHERE letter_id = $1 ORDER BY letter_id DESC, number DESC LIMIT $2`,
  { bigints: true },
)

/** Every failure on file, the oldest first; the last is the one that stands on the letter. */
export async function readFailures(session: Session, letter: Letter): Promise<Failure[]> {
  const before = (await FAILURE.all(session, readAttempts, letter.id, MAX_FAILURES - 1)).reverse()
  const { failedBy, errorClass, errorMessage, errorStack, lastFailureAt } = letter
  const number = (before.at(-1)?.number ?? 0) + 1
  return [...before, { number, failedAt: lastFailureAt, failedBy, errorClass, errorMessage, errorStack }]
}

function toUnlabelled(row: object): Unlabelled {
  const { capturedAt, shortKey, ...letter } = SUMMARY.read(row)
  const instanceId = letter.instanceId ?? letter.sourceId
  return {
    ...letter,
    rowKey: formatRowKey({ name: instanceId, at: capturedAt, number: keyNumber(letter.id, shortKey) }),
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
    place: placeOf(letter),
  }
}

function statusOf(status: Integer): LetterStatus {
  const name = STATUSES[Number(status)]
  if (name === undefined) throw new Error(`a letter has the unknown status ${status}`)
  return name
}
