/** Times for people: how long ago something was, in one unit. */
import { NODE_SOURCES } from '../core/system-clock.ts'

/** The time of this machine, in milliseconds since 1970. */
export const nowMs = (): number => NODE_SOURCES.wallMs()

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
]

/** How long before `now` this instant was, such as `5m`; `-` when there is none. What lies ahead is `0s`. */
export function ageOf(instant: string | null, now: number): string {
  if (instant === null) return '-'
  const ms = Math.max(0, now - Date.parse(instant))
  const [unit, unitMs] = UNITS.find(([, each]) => ms >= each) ?? ['s', 1_000]
  return `${Math.floor(ms / unitMs)}${unit}`
}

/** An instant in UTC to the second, for lines in which times are compared. */
export const secondsOf = (instant: string): string => `${instant.slice(0, 19).replace('T', ' ')}Z`
