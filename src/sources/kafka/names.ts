/** Names that Kafka and this module allow. Records are hostile: whatever of them becomes part of a name passes here. */

const SERVICE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,242}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Paths below `/kafka/` that are calls of their own. */
const RESERVED: readonly string[] = ['health', 'summary', 'docs', 'openapi.json', 'rpc']

export const isServiceName = (text: string): boolean =>
  SERVICE.test(text) && !RESERVED.includes(text) && !isUuid(text)

/** Whether it is a UUID of any version, in the usual form. */
export const isUuid = (text: string): boolean => UUID.test(text)

export const isUuidV4 = (text: string): boolean => UUID_V4.test(text)

/** A name, or with a star at its end all names that begin so. */
export const fits = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name

/** Whether a list of such patterns allows the name; an empty list allows all. */
export const isAllowed = (patterns: readonly string[], name: string): boolean =>
  patterns.length === 0 || patterns.some((pattern) => fits(pattern, name))
