/** Names of headers, as texts. Most are ones that some family writes: those are found without making a text of them. */
import { latin1 } from '../wire/text.ts'
import { FAMILIES } from './families.ts'

interface Known {
  readonly text: string
  readonly bytes: Uint8Array
}

/** Known names by length and the bytes at both ends. Many share these; few do so with the same length. */
const known = new Map<number, readonly Known[]>()
const NONE: readonly Known[] = []
for (const text of new Set(FAMILIES.flatMap(({ headers }) => headers.map(({ name }) => name)))) {
  const bytes = Buffer.from(text)
  known.set(trait(bytes), [...(known.get(trait(bytes)) ?? []), { text, bytes }])
}

function trait(name: Uint8Array): number {
  return (name.length << 16) | ((name[0] ?? 0) << 8) | (name[name.length - 1] ?? 0)
}

/** The text of a name, with one character for each byte. */
export function nameText(name: Uint8Array): string {
  for (const { text, bytes } of known.get(trait(name)) ?? NONE) if (isSame(bytes, name)) return text
  return latin1(name)
}

/** Names are short: a loop is faster than a call into the runtime. */
function isSame(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false
  return true
}
