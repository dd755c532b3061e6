/** Moments in fields of type `datetime-local`, which know no zone: they are read and written in the reader's. */
import type { Zone } from '../time/format.ts'

const two = (value: number): string => String(value).padStart(2, '0')

/** What stands in the field for a moment; nothing for none, and for what is no moment. */
export function inputOf(iso: string | undefined, zone: Zone): string {
  const date = new Date(iso ?? '')
  if (Number.isNaN(date.getTime())) return ''
  if (zone === 'utc') return date.toISOString().slice(0, 19)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** The moment that stands in the field, in UTC; null when it is empty or unfinished. */
export function instantOf(input: string, zone: Zone): string | null {
  const date = new Date(zone === 'utc' && input !== '' ? `${input}Z` : input)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
