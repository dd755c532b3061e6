/** Numbers and times for people. */
import { NODE_SOURCES } from '../core/system-clock.ts'

/** 1234567 as 1,234,567. */
export const grouped = (count: number): string => count.toLocaleString('en-US')

/** `a, b and c`. */
export const listed = (names: readonly string[], last: 'and' | 'or'): string =>
  [names.slice(0, -1).join(', '), ...names.slice(-1)].join(` ${last} `)

/** `1 letter`, `1,204 letters`. */
export const lettersText = (count: number): string =>
  `${grouped(count)} ${count === 1 ? 'letter' : 'letters'}`

/** The first line of a text. */
export const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

/** `once`, `twice`, `3 times`. */
export const timesText = (count: number): string => {
  if (count === 1) return 'once'
  return count === 2 ? 'twice' : `${grouped(count)} times`
}

/** `48.3`: a rate in as many digits as say something. */
export const rateText = (rate: number): string =>
  rate.toLocaleString('en-US', { maximumSignificantDigits: rate < 1_000 ? 3 : 6 })

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const

/** `2m 5s`: how long something takes, in its two largest units. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds))
  const largest = UNITS.findIndex(([, length]) => whole >= length)
  if (largest < 0) return '0s'
  let rest = whole
  const parts = UNITS.slice(largest, largest + 2).map(([unit, length]) => {
    const count = Math.floor(rest / length)
    rest -= count * length
    return count === 0 ? '' : `${count}${unit}`
  })
  return parts.filter((part) => part !== '').join(' ')
}

/** The time of this machine, in milliseconds since 1970. */
export const nowMs = (): number => NODE_SOURCES.wallMs()

/** How long before `now` this instant was in one unit, such as `5m`; `-` when there is none. What lies ahead is `0s`. */
export function ageOf(instant: string | null, now: number): string {
  if (instant === null) return '-'
  const seconds = Math.max(0, now - Date.parse(instant)) / 1_000
  const [unit, length] = UNITS.find(([, each]) => seconds >= each) ?? ['s', 1]
  return `${Math.floor(seconds / length)}${unit}`
}

/** An instant in UTC to the second, for lines in which times are compared. */
export const secondsOf = (instant: string): string => `${instant.slice(0, 19).replace('T', ' ')}Z`

const BARS = '▁▂▃▄▅▆▇█'

/** Bars in proportion to the largest number; zero is the lowest, and what is more than zero is never shown as zero. */
export function sparkline(numbers: readonly number[]): string {
  const most = Math.max(1, ...numbers)
  const steps = BARS.length - 1
  return numbers
    .map((number) => BARS[number <= 0 ? 0 : Math.max(1, Math.round((number / most) * steps))])
    .join('')
}
