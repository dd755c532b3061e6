/**
 * Entities of the two tables, in both directions: the fifteen columns as a letter has them, those of history, and what an act writes back.
 * Whatever an engine wrote can be read: a column that is missing or of another type is named, and never a reason to lose a message.
 */
import { createHash } from 'node:crypto'
import type { Instant } from '../../core/clock.ts'
import { storable } from '../../core/content.ts'
import { formatMicros, parseTimestamp } from '../../core/timestamp.ts'
import type { HistoryStatus } from '../../history/shapes.ts'
import { type Letter, type LetterStatus, RETRIED, STATUSES } from '../../letters/letter.ts'
import { type FoundMessage, MESSAGE, messageOf } from './message.ts'

/** An entity as the client gives it with types kept: numbers and times as texts, each with its type. */
export type RawEntity = Readonly<Record<string, unknown>>

interface Typed {
  readonly type: string
  readonly value: string
}

/** What every entity has. */
export interface EntityKey {
  readonly partitionKey: string
  readonly rowKey: string
}

export interface Stamped extends EntityKey {
  readonly etag: string
  /** The service's own time of the last write. */
  readonly writtenAt: Instant
}

/** A row of the DLQ table. */
export interface DlqEntity extends Stamped, FoundMessage {
  readonly instanceId: string
  /** null: the engine has none. */
  readonly originalQueue: string | null
  readonly errorMessage: string
  readonly dequeueCount: number
  readonly firstFailureAt: Instant
  readonly lastFailureAt: Instant
  readonly status: LetterStatus
  readonly notes: string | null
  readonly resolvedBy: string | null
  readonly correlationId: string
  /** What was not as the tables have it, and columns of the engine's own, each as a text. */
  readonly headers: Readonly<Record<string, string>>
}

/** A row of the history table. */
export interface HistoryEntity extends Stamped {
  readonly instanceId: string
  readonly operation: string
  readonly status: HistoryStatus
  readonly durationMs: number
  readonly input: string | null
  readonly output: string | null
  readonly error: string | null
  readonly createdAt: Instant
  readonly correlationId: string
}

const DLQ_COLUMNS = new Set([
  ...['Engine', 'InstanceId', 'OriginalQueue', 'OriginalMessage', 'ErrorMessage', 'DequeueCount'],
  ...['FirstFailureAtUtc', 'LastFailureAtUtc', 'Status', 'ResolutionNotes', 'ResolvedAtUtc', 'ResolvedBy'],
  'CorrelationId',
])
const SERVICE_COLUMNS = new Set(['partitionKey', 'rowKey', 'etag', 'timestamp', 'odata.metadata'])

/** Names are keys of indexes. */
const MAX_NAME_BYTES = 512
const MAX_DEQUEUE_COUNT = 2_147_483_647
/** What the seed has for an engine without a queue. */
const NO_QUEUE = /^(?:n\/?a|none|-)?$/i
/** Where a report names no instance. */
const PUBLISHER = 'publisher'

/** Reads columns, and remembers those that were not as they should be. */
class Columns {
  readonly odd: string[] = []
  readonly #raw: RawEntity

  constructor(raw: RawEntity) {
    this.#raw = raw
  }

  typed(name: string): Typed | null {
    const value = this.#raw[name]
    if (value === undefined || value === null) return null
    if (isTyped(value)) return value
    return { type: 'String', value: String(value) }
  }

  text(name: string): string | null {
    const found = this.typed(name)
    if (found !== null && found.type !== 'String') this.#note(name, found, 'String')
    return found?.value ?? null
  }

  /** A name that letters are found by; null when there is none. */
  name(name: string): string | null {
    const text = this.text(name)?.trim() ?? ''
    return text === '' ? null : storable(text, MAX_NAME_BYTES)
  }

  instant(name: string): Instant | null {
    const found = this.typed(name)
    if (found === null) return null
    if (found.type !== 'DateTime') this.#note(name, found, 'DateTime')
    const parsed = parseTimestamp(inUtc(found.value))
    if (!parsed.ok) this.#note(name, found, 'DateTime')
    return parsed.ok ? parsed.at : null
  }

  whole(name: string, most: number): number | null {
    const found = this.typed(name)
    if (found === null) return null
    const value = Number(found.value)
    const isWhole = Number.isFinite(value) && value >= 0 && value <= most
    if (!isWhole || !/^Int(?:32|64)$/.test(found.type)) this.#note(name, found, 'Int')
    return isWhole ? Math.trunc(value) : null
  }

  missing(...names: readonly string[]): void {
    for (const name of names) if (this.typed(name) === null) this.odd.push(`${name} is missing`)
  }

  #note(name: string, { type, value }: Typed, wanted: string): void {
    this.odd.push(`${name} is ${type} '${value.slice(0, 64)}', not ${wanted}`)
  }
}

const isTyped = (value: unknown): value is Typed =>
  typeof value === 'object' && value !== null && 'type' in value && 'value' in value

/** Times of Python without a zone are UTC by their name. */
const inUtc = (text: string): string =>
  (/(?:Z|[+-]\d{2}:\d{2})$/.test(text) ? text : `${text}Z`).replace(' ', 'T')

/** What the service itself says of an entity. */
export function stampOf(raw: RawEntity): Stamped {
  const { partitionKey, rowKey, etag, timestamp } = raw
  const time = isTyped(timestamp) ? timestamp.value : String(timestamp)
  const parsed = parseTimestamp(time)
  if (
    typeof partitionKey !== 'string' ||
    typeof rowKey !== 'string' ||
    typeof etag !== 'string' ||
    !parsed.ok
  )
    throw new Error(`an entity without keys, ETag or Timestamp: ${String(partitionKey)} ${String(rowKey)}`)
  return { partitionKey, rowKey, etag, writtenAt: parsed.at }
}

export function dlqEntity(raw: RawEntity): DlqEntity {
  const stamp = stampOf(raw)
  const columns = new Columns(raw)
  columns.missing('OriginalMessage', 'ErrorMessage', 'Status', 'CorrelationId')
  const lastFailureAt = columns.instant('LastFailureAtUtc') ?? stamp.writtenAt
  const first = columns.instant('FirstFailureAtUtc') ?? lastFailureAt
  const word = columns.text('Status')
  const status = STATUSES.find((each) => each === word)
  if (status === undefined && word !== null)
    columns.odd.push(`Status '${word.slice(0, 64)}' is none of ${STATUSES.join(', ')}`)
  const queue = columns.name('OriginalQueue')
  const found = {
    ...stamp,
    ...messageIn(columns.typed('OriginalMessage')),
    instanceId: columns.name('InstanceId') ?? PUBLISHER,
    originalQueue: queue === null || NO_QUEUE.test(queue) ? null : queue,
    errorMessage: columns.text('ErrorMessage') ?? 'the entity names no error',
    dequeueCount: Math.max(1, columns.whole('DequeueCount', MAX_DEQUEUE_COUNT) ?? 1),
    firstFailureAt: first < lastFailureAt ? first : lastFailureAt,
    lastFailureAt,
    // Somebody has to look at one whose word nobody knows.
    status: status ?? 'Pending',
    notes: columns.text('ResolutionNotes'),
    resolvedBy: columns.text('ResolvedBy'),
    correlationId: columns.name('CorrelationId') ?? storable(stamp.rowKey, MAX_NAME_BYTES),
  }
  return { ...found, headers: headersOf(raw, columns, stamp) }
}

function headersOf(
  raw: RawEntity,
  columns: Columns,
  { partitionKey, rowKey }: EntityKey,
): Record<string, string> {
  const others = Object.keys(raw).filter(
    (name) => !DLQ_COLUMNS.has(name) && !SERVICE_COLUMNS.has(name) && !name.startsWith('odata'),
  )
  return {
    ...{ PartitionKey: partitionKey, RowKey: rowKey },
    ...Object.fromEntries(others.map((name) => [name, columns.typed(name)?.value ?? ''])),
    ...(columns.odd.length > 0 && { odd: columns.odd.join('; ') }),
  }
}

/** The message of a column. Bytes are what they are; a text is base64 where it says so, see `messageOf`. */
function messageIn(found: Typed | null): FoundMessage {
  if (found?.type === 'Binary')
    return { payload: Buffer.from(found.value, 'base64'), encoding: MESSAGE.base64 }
  return messageOf(found?.value ?? '')
}

export function historyEntity(raw: RawEntity): HistoryEntity {
  const stamp = stampOf(raw)
  const columns = new Columns(raw)
  const word = columns.text('Status') ?? ''
  const status = word === 'Succeeded' ? 'Succeeded' : 'Failed'
  const error = columns.text('Error')
  return {
    ...stamp,
    instanceId: columns.name('InstanceId') ?? PUBLISHER,
    operation: columns.text('Operation') ?? '',
    status,
    durationMs: columns.whole('DurationMs', Number.MAX_SAFE_INTEGER) ?? 0,
    input: columns.text('Input'),
    output: columns.text('Output'),
    error: status === 'Failed' ? error?.trim() || errorFor(word) : error,
    createdAt: columns.instant('CreatedAtUtc') ?? stamp.writtenAt,
    correlationId: columns.name('CorrelationId') ?? storable(stamp.rowKey, MAX_NAME_BYTES),
  }
}

/** The error of an operation that failed without naming one. */
function errorFor(status: string): string {
  if (status === '') return 'the entity has no Status'
  return status === 'Failed' ? 'the entity names no error' : `Status is '${status.slice(0, 64)}'`
}

/** What the entity of a letter says while its message is being sent. */
export const CLAIMED_BY = 'bartleby:'

/** Columns of an act. null: it must not be there. */
export interface ActColumns {
  readonly Status: LetterStatus
  readonly ResolutionNotes: string | null
  readonly ResolvedAtUtc: string | null
  readonly ResolvedBy: string | null
}

/** What the entity of a letter has to say. An expired one has no time of resolution: it was given up, not resolved. */
export function columnsOf(
  letter: Pick<Letter, 'status' | 'resolution' | 'notes' | 'resolvedAt' | 'resolvedBy'>,
): ActColumns {
  const { status, resolution, notes, resolvedAt, resolvedBy } = letter
  if (status === 'Pending')
    return { Status: status, ResolutionNotes: null, ResolvedAtUtc: null, ResolvedBy: null }
  const isOwnWord = resolution === 'retry' && notes !== null && !notes.startsWith(RETRIED)
  return {
    Status: status,
    ResolutionNotes: isOwnWord ? `${RETRIED}; ${notes}` : notes,
    ResolvedAtUtc: status === 'Resolved' && resolvedAt !== null ? formatMicros(resolvedAt) : null,
    ResolvedBy: resolvedBy,
  }
}

/** Whether an entity says that already. */
export function saysSo(raw: RawEntity, columns: Partial<ActColumns>): boolean {
  const found = new Columns(raw)
  return Object.entries(columns).every(([name, wanted]) => {
    const value = found.typed(name)?.value ?? null
    if (name !== 'ResolvedAtUtc' || value === null || wanted === null) return (value ?? '') === (wanted ?? '')
    const [one, other] = [parseTimestamp(inUtc(value)), parseTimestamp(wanted)]
    return one.ok && other.ok && one.at === other.at
  })
}

/** Columns in the types of the table. */
export const typedColumns = (columns: Partial<ActColumns>): Record<string, Typed> =>
  Object.fromEntries(
    Object.entries(columns).flatMap(([name, value]) =>
      value === null ? [] : [[name, { type: name === 'ResolvedAtUtc' ? 'DateTime' : 'String', value }]],
    ),
  )

/** The entity with these columns in the place of its own, for a write that removes some: a merge can only add. */
export function replaced(raw: RawEntity, columns: Partial<ActColumns>): EntityKey & Record<string, unknown> {
  const { partitionKey, rowKey } = stampOf(raw)
  const kept = Object.entries(raw).filter(
    ([name]) => !SERVICE_COLUMNS.has(name) && !name.startsWith('odata') && !(name in columns),
  )
  return { ...Object.fromEntries(kept), ...typedColumns(columns), partitionKey, rowKey }
}

/** What the office calls an entity of a table, `{account}/{table}`. No key has a slash; one that is too long for an index is told by its digest. */
export function sourceIdOf(table: string, { partitionKey, rowKey }: EntityKey): string {
  const key = `${partitionKey}/${rowKey}`
  const short =
    Buffer.byteLength(key) <= MAX_NAME_BYTES && !key.includes('\0')
      ? key
      : `sha256:${createHash('sha256').update(key).digest('hex')}`
  return `${table}/${short}`
}
