/** Suggestions in the query bar: keys, and the values of keys that have few. */
import { LETTER_QUERY_KEYS } from '../../../src/core/letter-query.ts'

export interface Suggestion {
  /** What replaces the word. */
  readonly text: string
  readonly means: string
}

export interface Suggestions {
  /** The word that is being typed, in the whole text. */
  readonly start: number
  readonly end: number
  readonly all: readonly Suggestion[]
}

/** What could stand where the caret is. Within quotes nothing is suggested. `sources` are those that the server has. */
export function suggestionsAt(text: string, caret: number, sources: readonly string[] = []): Suggestions {
  const before = text.slice(0, caret)
  const start = Math.max(before.lastIndexOf(' '), before.lastIndexOf('\t')) + 1
  const word = before.slice(start).toLowerCase()
  const none = { start, end: caret, all: [] }
  if ((before.match(/(?<!\\)"/g)?.length ?? 0) % 2 === 1) return none
  const colon = word.indexOf(':')
  if (colon < 0) {
    const keys = LETTER_QUERY_KEYS.filter(({ key }) => key.startsWith(word))
    return { ...none, all: keys.map(({ key, means }) => ({ text: `${key}:`, means })) }
  }
  const known = LETTER_QUERY_KEYS.find(({ key }) => key === word.slice(0, colon))
  const few = known?.key === 'source' ? sources : (known?.values ?? [])
  const values = few.filter((value) => value.startsWith(word.slice(colon + 1)))
  return {
    ...none,
    all: values.map((value) => ({ text: `${known?.key}:${value} `, means: known?.means ?? '' })),
  }
}

/** The text with the word replaced, and where the caret then is. */
export function applied(
  text: string,
  { start, end }: Suggestions,
  suggestion: string,
): { readonly text: string; readonly caret: number } {
  const rest = text.slice(end)
  const joined = suggestion.endsWith(' ') ? rest.trimStart() : rest
  return { text: text.slice(0, start) + suggestion + joined, caret: start + suggestion.length }
}
