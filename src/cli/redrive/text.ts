/** A redrive in words: its plan, its terms, its numbers, and all that is on file about it. */
import { bytesOf } from '../../client/bytes.ts'
import type {
  RedriveDestination,
  RedriveDetail,
  RedriveItem,
  RedriveNumbers,
  RedriveSample,
} from '../../client/redrives.ts'
import { formatLetterQuery } from '../../core/letter-query.ts'
import { isSending } from '../../redrive/redrive.ts'
import {
  type Column,
  columnsText,
  counted,
  type Field,
  fieldLines,
  indented,
  section,
} from '../../terminal/table.ts'
import { printable, type Style } from '../../terminal/terminal.ts'
import {
  durationText,
  firstLine,
  grouped,
  lettersText,
  nowMs,
  rateText,
  secondsOf,
} from '../../terminal/words.ts'
import { diffLines, payloadText, sizeText } from '../letters/payload-text.ts'
import { progressOf } from './watch-frame.ts'

/** Lines of one payload. */
const MOST_LINES = 20
const COLUMNS = 80

export interface Shown {
  readonly width: number | undefined
  readonly style: Style
}

export function planText(
  plan: RedriveDetail,
  { letters, ...shown }: Shown & { readonly letters: number },
): string {
  const { style } = shown
  const destinations = isSending(plan.action)
    ? destinationLines(plan, [counted('LETTERS', planned)], shown)
    : []
  return [
    style.bold(printable(plan.sentence)),
    ...indented(termsText(plan)),
    '',
    ...indented(numberLines(plan.numbers, style)),
    ...section('Destinations', destinations, style),
    ...sampleLines(plan, letters, style),
  ].join('\n')
}

export const nextStep = ({ id, validUntilUtc }: RedriveDetail, place: string): string =>
  `plan ${id} is valid until ${secondsOf(validUntilUtc)}; nothing was changed. Start it with:\n  bartleby redrive start ${id} --watch${place}`

export const detailText = (redrive: RedriveDetail, { width, style }: Shown): string =>
  [
    `${style.bold(redrive.id)}  ${printable(redrive.sentence)}`,
    ...progressOf(redrive, width ?? COLUMNS, style),
    ...section('Course', [...course(redrive), ...termsText(redrive)], style),
    ...section('Plan', numberLines(redrive.numbers, style), style),
    ...section('Destinations', destinationLines(redrive, PARTS, { width, style }), style),
    ...section('Not sent', exceptionLines(redrive), style),
  ].join('\n')

function course(redrive: RedriveDetail): readonly string[] {
  const { plannedAtUtc, plannedBy, startedAtUtc, startedBy, endedAtUtc, validUntilUtc, state } = redrive
  const fields: readonly Field[] = [
    ['planned', `${secondsOf(plannedAtUtc)} by ${plannedBy}`],
    ['valid', state === 'planned' ? `until ${secondsOf(validUntilUtc)}` : null],
    ['started', startedAtUtc === null ? null : `${secondsOf(startedAtUtc)} by ${startedBy ?? '-'}`],
    ['ended', endedAtUtc === null ? null : `${secondsOf(endedAtUtc)}, ${state}`],
    ['note', redrive.note],
  ]
  return fieldLines(fields, FIELD_WIDTH)
}

const planned = (destination: RedriveDestination): number => destination.planned

const PARTS: readonly Column<RedriveDestination>[] = [
  counted('PLANNED', planned),
  counted('SENT', ({ sent }) => sent),
  counted('SKIPPED', ({ skipped }) => skipped),
  counted('FAILED', ({ failed }) => failed),
  counted('LEFT', ({ remaining }) => remaining),
]

const destinationLines = (
  { destinations }: RedriveDetail,
  numbers: readonly Column<RedriveDestination>[],
  { width, style }: Shown,
): readonly string[] => {
  if (destinations.length === 0) return []
  const columns: readonly Column<RedriveDestination>[] = [
    { heading: 'SOURCE', text: ({ source }) => source },
    ...numbers,
    { heading: 'DESTINATION', text: ({ name }) => name || '-', flexible: true },
  ]
  return columnsText(columns, destinations, width === undefined ? undefined : width - 2, style).split('\n')
}

const exceptionLines = ({ exceptions }: RedriveDetail): readonly string[] =>
  exceptions.map(
    ({ outcome, reason, letters }) => `${outcome.padEnd(9)}${lettersText(letters)}: ${reasonWords(reason)}`,
  )

const REASONS: Readonly<Record<string, string>> = {
  changed: 'changed since the plan was made',
  leased: 'held by a consumer',
  gone: 'not there any more',
  in_other_redrive: 'in another redrive',
  order_blocked: 'behind an earlier letter of its key that stayed',
  repair_refused: 'the repair does not apply',
  send_refused: 'refused where it was to go',
}

/** An unknown reason, of a newer server, stands as it is. */
export const reasonWords = (reason: string): string => REASONS[reason] ?? reason.replaceAll('_', ' ')

const MEANINGS: readonly (readonly [name: keyof RedriveNumbers, words: string, meaning: string])[] = [
  ['matched', 'matched', 'letters were asked for; the sum of those below'],
  ['eligible', 'eligible', 'are in the plan'],
  ['inFlight', 'in flight', 'are unconfirmed, leased, or in another redrive'],
  ['noDestination', 'no destination', 'have nowhere to go to'],
  ['orderBlocked', 'order blocked', 'come after a pending letter of their key that is not in the plan'],
  ['duplicate', 'duplicate', 'were named more than once'],
  ['invalid', 'invalid', 'are unknown, not in the status that it takes, or the repair does not apply'],
]

/** A line for each number; zeros are dimmed. */
export function numberLines(numbers: RedriveNumbers, style: Style): readonly string[] {
  const width = Math.max(...MEANINGS.map(([name]) => grouped(numbers[name]).length))
  return MEANINGS.map(([name, words, meaning]) => {
    const count = numbers[name]
    const line = `${grouped(count).padStart(width)}  ${words.padEnd(16)}${meaning}`
    if (count === 0) return style.dim(line)
    return name === 'eligible' ? style.bold(line) : line
  })
}

/** `2 no destination, 1 duplicate`: matched and not in the plan. */
export const leftOut = (numbers: RedriveNumbers): string =>
  MEANINGS.filter(([name]) => name !== 'matched' && name !== 'eligible' && numbers[name] > 0)
    .map(([name, words]) => `${grouped(numbers[name])} ${words}`)
    .join(', ')

const FIELD_WIDTH = 11

const ORDERS: Readonly<Record<RedriveItem['order'], string>> = {
  key: 'letters of a key in the order of their capture, and none before one that stays behind',
  capture: 'one after the other for each destination, in the order of their capture',
  none: 'as it comes',
}

/** A line for each of the terms that its sentence leaves out. */
function termsText(redrive: RedriveItem): readonly string[] {
  const { rate, canary, stopRule, repair, order, action } = redrive
  const fields: readonly Field[] = [
    ['letters', chosenText(redrive)],
    ['reason', redrive.reason],
    [
      'rate',
      rate === null
        ? null
        : `at most ${rateText(rate)} ${rate === 1 ? 'letter' : 'letters'} a second to each destination`,
    ],
    [
      'canary',
      canary === null
        ? null
        : `${lettersText(canary.letters)} first; goes on when ${canary.confirmPercent}% of these are confirmed, pauses after ${durationText(canary.waitSeconds)}`,
    ],
    [
      'stop rule',
      stopRule === null
        ? null
        : `stops when more than ${stopRule.percent}% of the last ${stopRule.of} outcomes are deaths`,
    ],
    ['order', isSending(action) ? ORDERS[order] : null],
    ['repair', repair === null ? null : repairText(repair)],
  ]
  return fieldLines(fields, FIELD_WIDTH)
}

/** The query, or how many were named. */
export function chosenText({ filter, ids }: Pick<RedriveItem, 'filter' | 'ids'>): string {
  if (filter === null) return ids === null ? '' : `${lettersText(ids)} by name`
  const texts = Object.entries(filter).map(([name, value]) => [name, String(value)])
  return formatLetterQuery(Object.fromEntries(texts), nowMs())
}

function repairText({ version, ...recipe }: NonNullable<RedriveItem['repair']>): string {
  const given = Object.entries(recipe).filter(([, value]) => value !== null && value !== undefined)
  return `${version}  ${JSON.stringify(Object.fromEntries(given))}`
}

function sampleLines({ sample, counts }: RedriveDetail, most: number, style: Style): readonly string[] {
  const shown = sample.slice(0, most)
  if (shown.length === 0) return []
  const title = shown.some(({ queue }) => queue !== null)
    ? 'The first letters as they would be sent'
    : 'The first letters'
  const rest = counts.planned - shown.length
  const more = rest > 0 ? [style.dim(`… and ${lettersText(rest)} more`)] : []
  return section(title, [...shown.flatMap((each) => letterLines(each, style)), ...more], style)
}

function letterLines(sample: RedriveSample, style: Style): readonly string[] {
  const name = style.cyan(printable(`${sample.engine} ${sample.rowKey}`))
  const error = style.dim(printable(firstLine(sample.errorMessage)))
  return [
    `${name}  ${error}`,
    ...(sample.refusal === null
      ? outgoingLines(sample, style)
      : [style.red(`  would be refused: ${printable(sample.refusal)}`)]),
  ]
}

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
