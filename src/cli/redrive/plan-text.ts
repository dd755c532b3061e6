/** A plan for people: what it would do, to how many and why not to others, and the first letters as they would be sent. */
import { bytesOf } from '../../client/bytes.ts'
import type { RedriveDestination, RedriveDetail, RedriveSample } from '../../client/redrive-types.ts'
import { isSending } from '../../redrive/redrive.ts'
import { columnsText } from '../columns.ts'
import { diffLines } from '../letters/payload-diff.ts'
import { payloadText, sizeText } from '../letters/payload-text.ts'
import { grouped } from '../progress.ts'
import type { Style } from '../style.ts'
import { printable } from '../terminal.ts'
import { secondsOf } from '../times.ts'
import { lettersText, numberLines } from './numbers.ts'
import { termsText } from './terms-text.ts'

/** Lines of one payload; --json shows all of it. */
const MOST_LINES = 20

export interface Shown {
  /** How many letters are shown as they would be sent. */
  readonly letters: number
  readonly width: number | undefined
  readonly style: Style
}

/** The whole plan as text. */
export function planText(plan: RedriveDetail, { letters, width, style }: Shown): string {
  return [
    style.bold(printable(plan.sentence)),
    ...termsText(plan).map((line) => `  ${line}`),
    '',
    ...numberLines(plan.numbers, style).map((line) => `  ${line}`),
    ...destinationLines(plan, width, style),
    ...sampleLines(plan, letters, style),
  ].join('\n')
}

/** How it is started, and until when it can be. */
export const nextStep = ({ id, validUntilUtc, counts }: RedriveDetail, place: string): string =>
  counts.planned === 0
    ? 'there is nothing to start'
    : `plan ${id} is valid until ${secondsOf(validUntilUtc)}; nothing was changed. Start it with:\n  bartleby redrive start ${id} --watch${place}`

function destinationLines(
  { action, destinations }: RedriveDetail,
  width: number | undefined,
  style: Style,
): readonly string[] {
  if (!isSending(action) || destinations.length === 0) return []
  const text = columnsText<RedriveDestination>(
    [
      { heading: 'SOURCE', text: ({ source }) => source },
      { heading: 'LETTERS', text: ({ planned }) => grouped(planned), right: true },
      { heading: 'DESTINATION', text: ({ name }) => name || '-', flexible: true },
    ],
    destinations,
    width === undefined ? undefined : width - 2,
    style,
  )
  return ['', style.bold('Destinations'), ...text.split('\n').map((line) => `  ${line}`)]
}

function sampleLines({ sample, counts }: RedriveDetail, most: number, style: Style): readonly string[] {
  const shown = sample.slice(0, most)
  if (shown.length === 0) return []
  const title = shown.some(({ queue }) => queue !== null)
    ? 'The first letters as they would be sent'
    : 'The first letters'
  const rest = counts.planned - shown.length
  return [
    '',
    style.bold(title),
    ...shown.flatMap((each) => letterLines(each, style).map((line) => `  ${line}`)),
    ...(rest > 0 ? [style.dim(`  … and ${lettersText(rest)} more`)] : []),
  ]
}

function letterLines(sample: RedriveSample, style: Style): readonly string[] {
  const name = style.cyan(printable(`${sample.engine} ${sample.rowKey}`))
  const error = style.dim(printable(sample.errorMessage.split('\n', 1)[0] ?? ''))
  return [
    `${name}  ${error}`,
    ...(sample.refusal === null ? outgoingLines(sample, style) : [refusalLine(sample.refusal, style)]),
  ]
}

const refusalLine = (refusal: string, style: Style): string =>
  style.red(`  would be refused: ${printable(refusal)}`)

function outgoingLines(sample: RedriveSample, style: Style): readonly string[] {
  const { queue, kind, encoding, reference, payload, payloadEncoding, payloadTruncated, before } = sample
  if (payload === null) return []
  const bytes = bytesOf(payload, payloadEncoding ?? 'utf8')
  const { kind: form, lines, isCut } = payloadText(bytes)
  const headers = Object.entries({ kind, encoding, reference }).flatMap(([name, value]) =>
    value === null || value === '' ? [] : [`${name} ${printable(value)}`],
  )
  const size = payloadTruncated ? `the first ${sizeText(bytes, form)}` : sizeText(bytes, form)
  const head = [`to ${printable(queue ?? '-')}`, size, ...headers].join(', ')
  const body =
    before === null ? lines : diffLines(bytesOf(before.payload, before.payloadEncoding), bytes, style)
  const cut = payloadTruncated || isCut || body.length > MOST_LINES
  return [
    `  ${head}${before === null ? '' : ', repaired'}`,
    ...body.slice(0, MOST_LINES).map((line) => `    ${line}`),
    ...(cut ? [style.dim('    … the rest is left out')] : []),
  ]
}
