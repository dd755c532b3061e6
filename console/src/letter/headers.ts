/** Headers as rows, whatever shape a source gave them, and the trace that they may name. */

export interface HeaderRow {
  readonly name: string
  readonly value: string
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/**
 * Members of an object, those of objects in it under their names with a dot; of a list, pairs and objects with name and value. null:
 * they have no such shape.
 */
export function headerRows(headers: unknown): readonly HeaderRow[] | null {
  if (Array.isArray(headers)) {
    const rows = headers.map(rowOf)
    return rows.every((row) => row !== null) ? rows : null
  }
  if (!isObject(headers)) return null
  return Object.entries(headers).flatMap(([name, value]) =>
    isObject(value)
      ? Object.entries(value).map(([inner, each]) => ({ name: `${name}.${inner}`, value: textOf(each) }))
      : [{ name, value: textOf(value) }],
  )
}

/** `["name", "value"]`, `{"name": …, "value": …}` or `{"key": …, "value": …}`. */
function rowOf(item: unknown): HeaderRow | null {
  if (Array.isArray(item)) return item.length === 2 ? { name: textOf(item[0]), value: textOf(item[1]) } : null
  if (!isObject(item)) return null
  const name = item.name ?? item.key
  if (typeof name !== 'string') return null
  return { name, value: textOf(item.value ?? item.valueBase64 ?? null) }
}

export interface Trace {
  readonly traceId: string
  readonly spanId: string
}

const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}/i

/** The trace that a header `traceparent` names; null without one. */
export function traceOf(headers: unknown): Trace | null {
  const given = headerRows(headers)?.find(({ name }) => /(?:^|\.)traceparent$/i.test(name))
  const [, traceId, spanId] = TRACEPARENT.exec(given?.value ?? '') ?? []
  return traceId === undefined || spanId === undefined ? null : { traceId, spanId }
}
