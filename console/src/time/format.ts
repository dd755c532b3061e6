/** Times and spans for people. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const UNITS = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
] as const

/** A span in its greatest fitting unit: `3 d`, `12 min`; under a second, `now`. */
export function span(ms: number): string {
  for (const [size, unit] of UNITS)
    if (Math.abs(ms) >= size) return `${Math.floor(Math.abs(ms) / size)} ${unit}`
  return 'now'
}

/** How long ago, or how far ahead. */
export function relative(at: number, now: number): string {
  const text = span(now - at)
  if (text === 'now') return text
  return at <= now ? `${text} ago` : `in ${text}`
}

export type Zone = 'utc' | 'local'

const two = (value: number): string => String(value).padStart(2, '0')

/** `2026-11-15 14:03:22.123` with the name of the zone. */
export function absolute(iso: string, zone: Zone): string {
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return iso
  if (zone === 'utc') return `${date.toISOString().slice(0, 23).replace('T', ' ')} UTC`
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  return `${day} ${time}.${String(date.getMilliseconds()).padStart(3, '0')} local`
}

/** 1234567 as 1,234,567. */
export const grouped = (count: number): string => count.toLocaleString('en-US')

/** At most four characters and a unit: `99,999`, `120k`, `3.4M`. */
export function short(count: number): string {
  if (count < 100_000) return grouped(count)
  if (count < 1_000_000) return `${Math.floor(count / 1_000)}k`
  return `${(Math.floor(count / 100_000) / 10).toLocaleString('en-US')}M`
}

/** A number of milliseconds as people say it: `840 ms`, `2.4 s`, `3 min`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / SECOND).toFixed(1)} s`
  return span(ms)
}

/** A size in bytes, in powers of 1,024. */
export function byteSize(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`
  if (bytes < 1_048_576) return `${(bytes / 1_024).toFixed(1)} KiB`
  return `${(bytes / 1_048_576).toFixed(1)} MiB`
}

/** `23:46`, with the day where it is another one. */
export function clockTime(at: Date, now: number, zone: Zone): string {
  const text = absolute(at.toISOString(), zone)
  const today = absolute(new Date(now).toISOString(), zone).slice(0, 10)
  return text.startsWith(today) ? text.slice(11, 16) : text.slice(5, 16)
}
