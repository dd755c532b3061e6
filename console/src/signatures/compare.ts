/** Messages compared word by word: what all of them say, and what differs from one to the next. Pure. */
import { diffArrays } from 'diff'

export interface Piece {
  readonly text: string
  /** Not every message has it, or not here. */
  readonly varies: boolean
}

/** Longer messages are compared at their beginning. */
const MAX_CHARACTERS = 2_000
/** Numbers, addresses, paths and ids are one word each; the rest of the punctuation separates. */
const WORDS = /\s+|[\p{L}\p{N}_.:@/\\#%+-]+|./gsu

/** Each message in pieces. Of one message alone nothing varies. */
export function compareMessages(messages: readonly string[]): readonly (readonly Piece[])[] {
  const texts = messages.map(wordsOf)
  const [first = [], ...others] = texts
  const shared = others.reduce<readonly string[]>((before, words) => sharedBy(before, words), first)
  return texts.map((words) => piecesOf(words, shared))
}

const wordsOf = (message: string): readonly string[] => message.slice(0, MAX_CHARACTERS).match(WORDS) ?? []

/** The words that both have, in the same order. */
const sharedBy = (one: readonly string[], other: readonly string[]): readonly string[] =>
  diffArrays([...one], [...other]).flatMap((run) => (run.added || run.removed ? [] : run.value))

function piecesOf(words: readonly string[], shared: readonly string[]): readonly Piece[] {
  const runs = diffArrays([...shared], [...words]).filter(({ removed }) => !removed)
  const pieces: { text: string; varies: boolean }[] = []
  for (const [place, run] of runs.entries()) {
    const text = run.value.join('')
    // A gap between two things that vary is no news.
    const isGap = !run.added && text.trim() === '' && place > 0 && place < runs.length - 1
    const last = pieces.at(-1)
    const varies = run.added || isGap
    if (last !== undefined && last.varies === varies) last.text += text
    else pieces.push({ text, varies })
  }
  return pieces
}

/** Of the letters of a group, those whose messages differ; the others say the same. */
export function differentOnes<Letter extends { readonly errorMessage: string }>(
  letters: readonly Letter[],
  most: number,
): readonly Letter[] {
  const byMessage = new Map<string, Letter>()
  for (const letter of letters)
    if (!byMessage.has(letter.errorMessage)) byMessage.set(letter.errorMessage, letter)
  return [...byMessage.values()].slice(0, most)
}
