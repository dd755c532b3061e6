/** Keys that are given without a value. */
import { isRecord } from './aliases.ts'

/** The same without them, all the way down: null is what YAML makes of such a key, undefined what code does. */
export function withoutNothing(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNothing)
  if (!isRecord(value)) return value
  const given = Object.entries(value).filter(([, inner]) => inner !== null && inner !== undefined)
  return Object.fromEntries(given.map(([key, inner]) => [key, withoutNothing(inner)]))
}
