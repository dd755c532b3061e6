/** `bartleby letters show`: one letter as JSON, its payload alone, or its case file for people. */
import { bytesOf } from '../../client/bytes.ts'
import type { LetterDetail } from '../../client/letter-types.ts'
import { officeCommand } from '../../terminal/office.ts'
import { type Field, fieldLines, indented, section } from '../../terminal/table.ts'
import { printable, type Style, statusIn } from '../../terminal/terminal.ts'
import { ageOf, firstLine, nowMs, secondsOf } from '../../terminal/words.ts'
import { errorLine } from './list.ts'
import { payloadText, sizeText } from './payload-text.ts'
import { letterNamed } from './which.ts'

export const showCommand = officeCommand(
  'letters show <engine> <rowKey>',
  'Show a letter with its case file: error, timeline, payload, headers, provenance.',
  [
    'show hmac i-7-20270110T090000000000000000004711Z',
    'show queues 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE       an instance will do where it has one letter',
    'show hmac i-7-20270110T090000000000000000004711Z --payload > payload.bin',
    "show hmac i-7-20270110T090000000000000000004711Z --json | jq '.attempts[].errorMessage'",
  ],
)
  .option('--payload', 'write the payload to stdout, byte for byte, and nothing else')
  .work(async (desk, engine, rowKey, { payload }) => {
    const letter = await letterNamed(desk, { engine, rowKey })
    if (payload) return desk.terminal.write(bytesOf(letter.originalMessage, letter.originalMessageEncoding))
    desk.print(letter, caseFile)
  })

const STACK_LINES = 12
const FIELD_WIDTH = 15

function caseFile(letter: LetterDetail, style: Style): string {
  return [
    `${style.bold(printable(`${letter.engine} ${letter.rowKey}`))}  ${statusIn(style, letter.status)}`,
    ...indented(fieldLines(standing(letter, nowMs()), FIELD_WIDTH)),
    ...section('Error', errorLines(letter), style),
    ...section('Timeline', timeline(letter), style),
    ...payloadSections(letter, style),
    ...section('Headers', headerLines(letter), style),
    ...section('Provenance', fieldLines(provenance(letter), FIELD_WIDTH), style),
  ].join('\n')
}

const when = (instant: string, now: number): string => `${secondsOf(instant)} (${ageOf(instant, now)} ago)`

const standing = (letter: LetterDetail, now: number): readonly Field[] => [
  ['queue', letter.originalQueue],
  ['attempts', String(letter.dequeueCount)],
  ['first failure', when(letter.firstFailureAtUtc, now)],
  ['last failure', when(letter.lastFailureAtUtc, now)],
  ['ended', ending(letter)],
  ['kept until', letter.restorableUntilUtc === null ? null : secondsOf(letter.restorableUntilUtc)],
  [
    'sent',
    letter.sentAs === null ? null : `as ${letter.sentAs} to ${letter.sentTo ?? '-'}, ${outcome(letter, now)}`,
  ],
  [
    'leased',
    letter.leased ? `by a consumer of its dead queue, until ${letter.leaseDeadlineUtc ?? '-'}` : null,
  ],
  ...letter.remarks.map((remark): Field => ['note', remark]),
]

function ending(letter: LetterDetail): string | null {
  const { resolution, resolvedBy, resolutionNotes } = letter
  if (resolution === null) return null
  const endedAtUtc = letter.resolvedAtUtc ?? letter.expiredAtUtc
  const at = endedAtUtc === null ? '' : ` ${secondsOf(endedAtUtc)}`
  const by = resolvedBy === null ? '' : ` by ${resolvedBy}`
  return `${resolution}${at}${by}${resolutionNotes === null ? '' : `: ${resolutionNotes}`}`
}

function outcome({ status, confirmedAtUtc }: LetterDetail, now: number): string {
  if (confirmedAtUtc !== null) return `confirmed ${when(confirmedAtUtc, now)}`
  return status === 'Pending' ? 'and came back' : 'not confirmed yet'
}

const provenance = (letter: LetterDetail): readonly Field[] => [
  ['source', letter.source],
  ['source id', letter.sourceId],
  ['instance', letter.instanceId],
  ['partition', letter.originalPartition === null ? null : String(letter.originalPartition)],
  ['dead queue', letter.deadQueue],
  ['reason', letter.reason],
  ['failed by', letter.failedBy],
  ['kind', letter.kind],
  ['encoding', letter.encoding],
  ['reference', letter.reference],
  ['correlation', letter.correlationId],
  ['signature', letter.signature],
]

function errorLines(letter: LetterDetail): readonly string[] {
  const [first = '', ...others] = letter.errorMessage.split('\n')
  // Most stacks begin with the message.
  const isFrame = (line: string) => line.trim() !== '' && !line.startsWith(`${letter.errorClass}:`)
  const stack = (letter.errorStack ?? '').split('\n').filter(isFrame)
  const more = stack.length - STACK_LINES
  return [
    errorLine({ errorClass: letter.errorClass, errorMessage: first }),
    ...others,
    ...stack.slice(0, STACK_LINES).map((line) => `  ${line.trim()}`),
    ...(more > 0 ? [`  … ${more} more lines`] : []),
  ].map(printable)
}

/** In the order of time. */
function timeline({ attempts, history }: LetterDetail): readonly string[] {
  const failures = attempts.map((each) => ({
    at: each.failedAtUtc,
    text: `failed (${each.number})  ${errorLine(each)}${each.failedBy === null ? '' : `, by ${each.failedBy}`}`,
  }))
  const acts = history.map(({ createdAtUtc, operation, status, actor, notes, error }) => ({
    at: createdAtUtc,
    text: [
      `${operation}${status === 'Failed' ? ' failed' : ''}`,
      ...(actor === null ? [] : [`by ${actor}`]),
      ...(notes === null ? [] : [`“${notes}”`]),
      ...(error === null ? [] : [firstLine(error)]),
    ].join('  '),
  }))
  return [...failures, ...acts]
    .sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)))
    .map(({ at, text }) => `${secondsOf(at)}  ${printable(text)}`)
}

function payloadSections(letter: LetterDetail, style: Style): readonly string[] {
  const original = bytesOf(letter.originalMessage, letter.originalMessageEncoding)
  const hash = `sha256 ${letter.originalMessageSha256}`
  const { editedMessage, editedMessageEncoding } = letter
  return [
    ...payloadSection('Payload', original, hash, style),
    ...(editedMessage === null
      ? []
      : payloadSection(
          'Edited payload',
          bytesOf(editedMessage, editedMessageEncoding ?? 'utf8'),
          'what a retry sends',
          style,
        )),
  ]
}

function payloadSection(title: string, bytes: Uint8Array, note: string, style: Style): readonly string[] {
  const { kind, lines, isCut } = payloadText(bytes)
  return [
    '',
    `${style.bold(title)}  ${style.dim(`${sizeText(bytes, kind)}, ${note}`)}`,
    ...indented(lines),
    ...(isCut ? ['  … the rest is left out; --payload writes all of it'] : []),
  ]
}

function headerLines({ headers }: LetterDetail): readonly string[] {
  if (headers === null) return []
  if (typeof headers !== 'object' || Array.isArray(headers)) return [printable(textOfHeader(headers))]
  return Object.entries(headers).map(([name, value]) => printable(`${name}: ${textOfHeader(value)}`))
}

const textOfHeader = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
