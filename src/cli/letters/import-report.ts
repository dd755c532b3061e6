/** A letter of an export as a report to an office: with a source id that is the same at every import, so that none is twice. */
import { createHash } from 'node:crypto'
import { bytesOf } from '../../client/bytes.ts'
import type { CaptureRequest, LetterDetail } from '../../client/letter-types.ts'
import { IMPORT_PREFIX, isImported } from '../../core/source-id.ts'
import { SOURCE_COMMANDS } from '../../sources/commands.ts'
import { given } from '../../terminal/flags.ts'

/** The engine that anything can be reported under. */
export const REPORTS = SOURCE_COMMANDS.find(({ takesReports }) => takesReports)?.name ?? ''

const MOST_SOURCE_ID = 512
const MOST_INSTANCE = 256
const MOST_CORRELATION = 256
const MOST_QUEUE = 512

/** Read from a line of an export, or what is wrong with it. */
export type ReadLetter =
  | { readonly kind: 'letter'; readonly letter: LetterDetail }
  | { readonly kind: 'unreadable'; readonly reason: string }

/** What a report cannot do without. */
const NEEDED = ['engine', 'rowKey', 'sourceId', 'status', 'originalMessage', 'errorMessage'] as const

/** Reads a line. */
export function readLetter(line: Uint8Array): ReadLetter {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line))
  } catch {
    return { kind: 'unreadable', reason: 'it is no JSON' }
  }
  if (typeof value !== 'object' || value === null) return { kind: 'unreadable', reason: 'it is no object' }
  for (const name of NEEDED) {
    if (typeof Reflect.get(value, name) !== 'string') {
      return { kind: 'unreadable', reason: `it is no exported letter: '${name}' is missing` }
    }
  }
  // What is needed is there; the server checks the rest.
  return { kind: 'letter', letter: value as LetterDetail }
}

/** The report that files the letter; `engine` instead of its own when given. */
export function reportOf(letter: LetterDetail, engine: string | undefined): CaptureRequest {
  // A source that names its letters after itself has made them of its own items; nobody can report those.
  const isOwn = letter.engine === letter.source
  return {
    engine: engine ?? (isOwn ? REPORTS : letter.engine),
    sourceId: importId(letter),
    originalMessage: bytesOf(letter.originalMessage, letter.originalMessageEncoding),
    errorMessage: letter.errorMessage,
    ...given({
      errorClass: within(letter.errorClass),
      errorStack: within(letter.errorStack),
      instanceId: within(letter.instanceId, MOST_INSTANCE),
      originalQueue: within(letter.originalQueue, MOST_QUEUE),
      correlationId: within(letter.correlationId, MOST_CORRELATION),
    }),
    // An item that expired untouched has none, and a report at least one.
    dequeueCount: Math.max(1, letter.dequeueCount),
    firstFailureAtUtc: letter.firstFailureAtUtc,
    lastFailureAtUtc: letter.lastFailureAtUtc,
    headers: headersOf(letter),
  }
}

/** The text where there is one that is not too long. */
const within = (text: string | null | undefined, most = Number.POSITIVE_INFINITY): string | undefined =>
  text && text.length <= most ? text : undefined

/** An import of an import keeps its id: however often it goes round, it is one letter. */
function importId({ engine, sourceId }: LetterDetail): string {
  if (isImported(sourceId)) return sourceId
  const id = `${IMPORT_PREFIX}${engine}:${sourceId}`
  if (id.length <= MOST_SOURCE_ID) return id
  return `${IMPORT_PREFIX}${engine}:sha256:${createHash('sha256').update(sourceId).digest('hex')}`
}

/** Its own headers as texts, and of where it came from what a report has no field for. */
function headersOf(letter: LetterDetail): Readonly<Record<string, string>> {
  const { headers, headersEncoding } = letter
  const own =
    headersEncoding === 'json' && typeof headers === 'object' && headers !== null && !Array.isArray(headers)
      ? Object.entries(headers).map(([name, value]) => [name, asText(value)] as const)
      : headers === null
        ? []
        : [['bartleby-original-headers', asText(headers)] as const]
  // What it says of itself goes first: where it came from before its first import.
  return Object.fromEntries([
    ...Object.entries(
      given({
        'bartleby-original-engine': within(letter.engine),
        'bartleby-original-row-key': within(letter.rowKey),
        'bartleby-original-source-id': within(letter.sourceId),
        'bartleby-original-kind': within(letter.kind),
        'bartleby-original-encoding': within(letter.encoding),
        'bartleby-original-reference': within(letter.reference),
      }),
    ),
    ...own,
  ])
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
