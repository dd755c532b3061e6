/** What a key press means, given the key pressed before it. Pure. */

/** The second key of a sequence is waited for this long. */
export const SEQUENCE_MS = 1_200

export type Meaning =
  | { readonly kind: 'run'; readonly keys: string }
  /** The first of two. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'nothing' }

/**
 * `known` are all keys that work now, `before` is the first of two, if one waits. A second key that makes no known sequence means
 * nothing by itself: whoever mistypes `g d` did not ask to discard.
 */
export function meaningOf(known: readonly string[], before: string | null, pressed: string): Meaning {
  const keys = before === null ? pressed : `${before} ${pressed}`
  if (known.includes(keys)) return { kind: 'run', keys }
  const isFirst = known.some((each) => each.length > 1 && each.startsWith(`${pressed} `))
  return { kind: isFirst ? 'wait' : 'nothing' }
}
