/** How a redrive is to go, in words: what its sentence leaves out. */

import type { RedriveItem } from '../../client/redrive-types.ts'
import { formatLetterQuery } from '../../core/letter-query.ts'
import { isSending } from '../../redrive/redrive.ts'
import { printable } from '../terminal.ts'
import { nowMs } from '../times.ts'
import { durationText, lettersText, rateText } from './numbers.ts'

type Field = readonly [name: string, value: string | null]

const ORDERS: Readonly<Record<RedriveItem['order'], string>> = {
  key: 'letters of a key in the order of their capture, and none before one that stays behind',
  capture: 'one after the other for each destination, in the order of their capture',
  none: 'as it comes',
}

/** A line for each of the terms, names in one column; what it does not have is left out. */
export function termsText(redrive: RedriveItem): readonly string[] {
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
  return fields.flatMap(([name, value]) =>
    value === null || value === '' ? [] : [`${name.padEnd(11)}${printable(value)}`],
  )
}

/** Which letters it is about: the query that asks for them, or how many were named. */
export function chosenText({ filter, ids }: Pick<RedriveItem, 'filter' | 'ids'>): string {
  if (filter === null) return ids === null ? '' : `${lettersText(ids)} by name`
  const texts = Object.entries(filter).map(([name, value]) => [name, String(value)])
  return formatLetterQuery(Object.fromEntries(texts), nowMs())
}

function repairText({ version, ...recipe }: NonNullable<RedriveItem['repair']>): string {
  const given = Object.entries(recipe).filter(([, value]) => value !== null && value !== undefined)
  return `${version}  ${JSON.stringify(Object.fromEntries(given))}`
}
