/** What charts of activity draw: the lines, how each looks, and what its numbers are called. Pure. */
import type { Activity, Range, SeriesName } from '../api/types.ts'
import type { Zone } from '../time/format.ts'

/** How a line is drawn: in its colour (`--series-…` of the theme) and its dashes, so that nobody depends on the colour. */
export const LINES: Readonly<
  Record<SeriesName, { readonly word: string; readonly dash: readonly number[] }>
> = {
  arrived: { word: 'Arrived', dash: [] },
  retried: { word: 'Retried', dash: [9, 4] },
  confirmed: { word: 'Confirmed', dash: [9, 3, 2, 3] },
  returned: { word: 'Returned', dash: [4, 4] },
  discarded: { word: 'Discarded', dash: [2, 3] },
  expired: { word: 'Expired', dash: [1, 5] },
}

export const RANGE_WORDS: Readonly<Record<Range, string>> = {
  '1h': '1 h',
  '24h': '24 h',
  '7d': '7 d',
  '30d': '30 d',
}

export const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

/** When the stretches of time begin, in seconds, and when the last one ends. */
export function edgesOf({ fromUtc, bucketSeconds, series }: Activity): readonly number[] {
  const from = Math.floor(Date.parse(fromUtc) / 1_000)
  return Array.from({ length: series.arrived.length + 1 }, (_, place) => from + place * bucketSeconds)
}

/** The stretch of time that a moment lies in; null outside of all. */
export function bucketAt(activity: Activity, atSeconds: number): number | null {
  const place = Math.floor((atSeconds - Date.parse(activity.fromUtc) / 1_000) / activity.bucketSeconds)
  return place >= 0 && place < activity.series.arrived.length ? place : null
}

/** The stretches in which something happened, the newest first. */
export function busyBuckets(activity: Activity, names: readonly SeriesName[]): readonly number[] {
  return activity.series.arrived
    .map((_, place) => place)
    .filter((place) => names.some((name) => (activity.series[name][place] ?? 0) > 0))
    .reverse()
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const DAY_SECONDS = 86_400

/** The parts of a moment that its zone shows. */
function partsOf(atSeconds: number, zone: Zone) {
  const date = new Date(atSeconds * 1_000)
  const [month, day, hour, minute] =
    zone === 'utc'
      ? [date.getUTCMonth(), date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes()]
      : [date.getMonth(), date.getDate(), date.getHours(), date.getMinutes()]
  return {
    day: `${day} ${MONTHS[month] ?? ''}`,
    clock: `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`,
  }
}

/** The mark of an axis: the time of day, or the day where it begins. */
export function axisMark(atSeconds: number, stepSeconds: number, zone: Zone): string {
  const { day, clock } = partsOf(atSeconds, zone)
  return stepSeconds >= DAY_SECONDS || clock === '00:00' ? day : clock
}

/** A stretch of time in words: `15 Nov 14:15–14:30 UTC`. */
export function stretch(activity: Activity, place: number, zone: Zone): string {
  const from = Math.floor(Date.parse(activity.fromUtc) / 1_000) + place * activity.bucketSeconds
  const start = partsOf(from, zone)
  const end = partsOf(from + activity.bucketSeconds, zone)
  return `${start.day} ${start.clock}–${end.clock}${zone === 'utc' ? ' UTC' : ''}`
}

/** The whole of it, for those who cannot see it. */
export const spoken = (activity: Activity, names: readonly SeriesName[]): string =>
  names.map((name) => `${sumOf(activity.series[name])} ${LINES[name].word.toLowerCase()}`).join(', ')
