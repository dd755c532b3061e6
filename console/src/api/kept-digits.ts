/**
 * JSON whose numbers keep all their digits: those that JavaScript cannot hold are left as they are written, and `JSON.stringify` writes
 * them so again. Where the browser cannot do that, they are rounded, as everywhere else.
 */

/** Newer than the type library knows; presence is checked. */
interface RawJson {
  rawJSON?: (text: string) => unknown
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { readonly source?: string }) => unknown

const keepDigits: Reviver = (_, value, context) => {
  const source = context?.source
  const raw = (JSON as RawJson).rawJSON
  if (typeof value !== 'number' || source === undefined || raw === undefined) return value
  return JSON.stringify(value) === source ? value : raw.call(JSON, source)
}

/** Reads JSON; throws what `JSON.parse` throws. */
export const parseKeepingDigits = (text: string): unknown => JSON.parse(text, keepDigits)
