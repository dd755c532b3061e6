/** An exported letter as a report, with a source id that is the same at every import. */
import { createHash } from 'node:crypto'
import { bytesOf } from '../../client/bytes.ts'
import type { CaptureRequest, LetterDetail } from '../../client/letter-types.ts'
import { IMPORT_PREFIX, isImported } from '../../core/source-id.ts'
import { SOURCE_COMMANDS } from '../../sources/commands.ts'
import { given } from '../../terminal/flags.ts'

/** Anything can be reported under it. */
export const REPORTS = SOURCE_COMMANDS.find(({ takesReports }) => takesReports)?.name ?? ''

const MOST_SOURCE_ID = 512
const MOST_INSTANCE = 256
const MOST_CORRELATION = 256
const MOST_QUEUE = 512

export type ReadLetter =
  | { readonly kind: 'letter'; readonly letter: LetterDetail }
  | { readonly kind: 'unreadable'; readonly reason: string }

const NEEDED = ['engine', 'rowKey', 'sourceId', 'status', 'originalMessage', 'errorMessage'] as const

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
  // The server checks the rest.
  return { kind: 'letter', letter: value as LetterDetail }
}

/** `engine` replaces the letter's own. */
export function reportOf(letter: LetterDetail, engine: string | undefined): CaptureRequest {
  // Such a source made the letter of its own item, which nobody can report.
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
    // Items that expired untouched have none; a report needs one.
    dequeueCount: Math.max(1, letter.dequeueCount),
    firstFailureAtUtc: letter.firstFailureAtUtc,
    lastFailureAtUtc: letter.lastFailureAtUtc,
    headers: headersOf(letter),
  }
}

/** Undefined when empty or too long. */
const within = (text: string | null | undefined, most = Number.POSITIVE_INFINITY): string | undefined =>
  text && text.length <= most ? text : undefined

/** An import of an import keeps its id and stays one letter. */
function importId({ engine, sourceId }: LetterDetail): string {
  if (isImported(sourceId)) return sourceId
  const id = `${IMPORT_PREFIX}${engine}:${sourceId}`
  if (id.length <= MOST_SOURCE_ID) return id
  return `${IMPORT_PREFIX}${engine}:sha256:${createHash('sha256').update(sourceId).digest('hex')}`
}

/** Its own headers as texts, and origins that a report has no field for. */
function headersOf(letter: LetterDetail): Readonly<Record<string, string>> {
  const { headers, headersEncoding } = letter
  const own =
    headersEncoding === 'json' && typeof headers === 'object' && headers !== null && !Array.isArray(headers)
      ? Object.entries(headers).map(([name, value]) => [name, asText(value)] as const)
      : headers === null
        ? []
        : [['bartleby-original-headers', asText(headers)] as const]
  // Its own headers win: they name the origin before the first import.
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
