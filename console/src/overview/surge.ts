/** More letters of one cause than usual: since when, and how many times as many. Pure. */
import type { SignatureGroup } from '../api/types.ts'
import { againstUsual } from './usual.ts'

const HOUR_MS = 3_600_000

export interface Surge {
  /** The start of the hour in which it began, or the first letter where that is later. */
  readonly since: Date
  /** `290× usual`. */
  readonly words: string
  readonly times: number
}

type Trend = Pick<SignatureGroup, 'trend' | 'firstSeenAtUtc'>

/** Letters of the fuller of the last two hours: the current one may just have begun. */
export const perHourOf = ({ trend }: Pick<Trend, 'trend'>): number => Math.max(0, ...trend.slice(-2))

/** Null where no more arrive than usual. The last hour of the trend is the current one. */
export function surgeOf(group: Trend, now: number): Surge | null {
  const perHour = perHourOf(group)
  const usual = medianOf(group.trend)
  const { words, isHigh } = againstUsual(perHour, usual)
  if (!isHigh) return null
  const began = group.trend.slice(0, -1).findLastIndex((letters) => letters <= 2 * usual) + 1
  const hoursAgo = group.trend.length - 1 - began
  const hour = (Math.floor(now / HOUR_MS) - hoursAgo) * HOUR_MS
  return {
    since: new Date(Math.max(hour, Date.parse(group.firstSeenAtUtc))),
    words,
    times: perHour / Math.max(usual, 1),
  }
}

const medianOf = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)] ?? 0
