/** Answers filled by their shapes: only fields that the shape names leave the office. */
import type { TObject, TProperties } from 'typebox'
import type { Instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { Shape, Within } from './shapes.ts'

export function viewOf<Fields extends TProperties>(
  shape: TObject<Fields>,
): (seen: Within<Shape<TObject<Fields>>>) => Shape<TObject<Fields>> {
  const fields = Object.keys(shape.properties).map((name) =>
    name.endsWith('Utc')
      ? { name, from: name.slice(0, -'Utc'.length), isTime: true }
      : { name, from: name, isTime: false },
  )
  return (seen) => {
    // The cast holds: the type has every name of the shape.
    const values = seen as Readonly<Record<string, unknown>>
    const answer: Record<string, unknown> = {}
    for (const { name, from, isTime } of fields) {
      const value = values[from]
      answer[name] = isTime && value !== null ? formatMicros(value as Instant) : value
    }
    return answer as Shape<TObject<Fields>>
  }
}
