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

export const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

/** `once`, `twice`, `3 times`. */
export const timesText = (count: number): string => {
  if (count === 1) return 'once'
  return count === 2 ? 'twice' : `${grouped(count)} times`
}

/** `48.3`: three significant digits below 1,000. */
export const rateText = (rate: number): string =>
  rate.toLocaleString('en-US', { maximumSignificantDigits: rate < 1_000 ? 3 : 6 })

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const

/** `2m 5s`: the two largest units. */
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

/** Milliseconds since 1970. */
export const nowMs = (): number => NODE_SOURCES.wallMs()

/** `5m`; `-` for null, `0s` for the future. */
export function ageOf(instant: string | null, now: number): string {
  if (instant === null) return '-'
  const seconds = Math.max(0, now - Date.parse(instant)) / 1_000
  const [unit, length] = UNITS.find(([, each]) => seconds >= each) ?? ['s', 1]
  return `${Math.floor(seconds / length)}${unit}`
}

/** UTC to the second. */
export const secondsOf = (instant: string): string => `${instant.slice(0, 19).replace('T', ' ')}Z`

const BARS = '▁▂▃▄▅▆▇█'

/** In proportion to the largest number; only zero is shown as zero. */
export function sparkline(numbers: readonly number[]): string {
  const most = Math.max(1, ...numbers)
  const steps = BARS.length - 1
  return numbers
    .map((number) => BARS[number <= 0 ? 0 : Math.max(1, Math.round((number / most) * steps))])
    .join('')
}
