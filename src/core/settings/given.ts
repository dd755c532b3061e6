/** Settings as YAML, JSON or code give them: mappings in which null and undefined are "not given". */

export type Settings = Readonly<Record<string, unknown>>

/** A plain record, as YAML and JSON give it. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A copy without null and undefined, all the way down. */
export function withoutNothing(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNothing)
  if (!isRecord(value)) return value
  const given = Object.entries(value).filter(([, inner]) => inner !== null && inner !== undefined)
  return Object.fromEntries(given.map(([key, inner]) => [key, withoutNothing(inner)]))
}

/** `below` with what `above` gives put over it, section by section. */
export function overlay(below: Settings, above: Settings): Settings {
  const merged: Record<string, unknown> = { ...below }
  for (const [key, value] of Object.entries(above)) {
    const covered = merged[key]
    if (isRecord(value) && isRecord(covered)) merged[key] = overlay(covered, value)
    else if (value !== null && value !== undefined) merged[key] = value
  }
  return merged
}
