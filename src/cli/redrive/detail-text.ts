/** A redrive for people: what it does, how far it is, and everything that is on file about it. */

import type { RedriveDestination, RedriveDetail } from '../../client/redrive-types.ts'
import { columnsText } from '../columns.ts'
import { grouped } from '../progress.ts'
import type { Style } from '../style.ts'
import { printable } from '../terminal.ts'
import { secondsOf } from '../times.ts'
import { lettersText, numberLines } from './numbers.ts'
import { reasonWords } from './reason-words.ts'
import { termsText } from './terms-text.ts'
import { progressOf } from './watch-frame.ts'

const COLUMNS = 80

/** The whole of it as text. */
export function detailText(
  redrive: RedriveDetail,
  { width, style }: { readonly width: number | undefined; readonly style: Style },
): string {
  return [
    `${style.bold(redrive.id)}  ${printable(redrive.sentence)}`,
    ...progressOf(redrive, width ?? COLUMNS, style),
    ...section('Course', [...course(redrive), ...termsText(redrive)], style),
    ...section('Plan', numberLines(redrive.numbers, style), style),
    ...section('Destinations', destinationLines(redrive.destinations, width, style), style),
    ...section('Not sent', exceptionLines(redrive), style),
  ].join('\n')
}

const section = (title: string, lines: readonly string[], style: Style): readonly string[] =>
  lines.length === 0 ? [] : ['', style.bold(title), ...lines.map((line) => `  ${line}`)]

function course(redrive: RedriveDetail): readonly string[] {
  const { plannedAtUtc, plannedBy, startedAtUtc, startedBy, endedAtUtc, validUntilUtc, state } = redrive
  const fields: readonly (readonly [string, string | null])[] = [
    ['planned', `${secondsOf(plannedAtUtc)} by ${plannedBy}`],
    ['valid', state === 'planned' ? `until ${secondsOf(validUntilUtc)}` : null],
    ['started', startedAtUtc === null ? null : `${secondsOf(startedAtUtc)} by ${startedBy ?? '-'}`],
    ['ended', endedAtUtc === null ? null : `${secondsOf(endedAtUtc)}, ${state}`],
    ['note', redrive.note],
  ]
  return fields.flatMap(([name, value]) =>
    value === null || value === '' ? [] : [`${name.padEnd(11)}${printable(value)}`],
  )
}

function destinationLines(
  destinations: readonly RedriveDestination[],
  width: number | undefined,
  style: Style,
): readonly string[] {
  if (destinations.length === 0) return []
  const number = (heading: string, of: (each: RedriveDestination) => number) => ({
    heading,
    text: (each: RedriveDestination) => grouped(of(each)),
    right: true,
  })
  return columnsText<RedriveDestination>(
    [
      { heading: 'SOURCE', text: ({ source }) => source },
      number('PLANNED', ({ planned }) => planned),
      number('SENT', ({ sent }) => sent),
      number('SKIPPED', ({ skipped }) => skipped),
      number('FAILED', ({ failed }) => failed),
      number('LEFT', ({ remaining }) => remaining),
      { heading: 'DESTINATION', text: ({ name }) => name || '-', flexible: true },
    ],
    destinations,
    width === undefined ? undefined : width - 2,
    style,
  ).split('\n')
}

const exceptionLines = ({ exceptions }: RedriveDetail): readonly string[] =>
  exceptions.map(
    ({ outcome, reason, letters }) => `${outcome.padEnd(9)}${lettersText(letters)}: ${reasonWords(reason)}`,
  )
