/** Attempts compared: what an error says differently from the one before it. */
import type { LetterAttempt } from '../api/types.ts'

/** A piece of a message; `differs` from what stood there the time before. */
export interface Piece {
  readonly text: string
  readonly differs: boolean
}

export interface ComparedAttempt {
  readonly attempt: LetterAttempt
  /** Its error is word for word the one of the attempt before. */
  readonly isSame: boolean
  readonly isOtherClass: boolean
  readonly isOtherStack: boolean
  readonly message: readonly Piece[]
}

/** The attempts, the newest first, each compared with the one before it. */
export function compareAttempts(attempts: readonly LetterAttempt[]): readonly ComparedAttempt[] {
  const inOrder = [...attempts].sort((a, b) => a.number - b.number)
  return inOrder
    .map((attempt, place) => {
      const before = inOrder[place - 1]
      if (before === undefined) {
        return {
          attempt,
          isSame: false,
          isOtherClass: false,
          isOtherStack: false,
          message: [{ text: attempt.errorMessage, differs: false }],
        }
      }
      const isOtherClass = before.errorClass !== attempt.errorClass
      const hasStacks = before.errorStack !== null && attempt.errorStack !== null
      const isOtherStack = hasStacks && framesOf(before) !== framesOf(attempt)
      const message = differences(before.errorMessage, attempt.errorMessage)
      return {
        attempt,
        isSame: !isOtherClass && !isOtherStack && message.every(({ differs }) => !differs),
        isOtherClass,
        isOtherStack,
        message,
      }
    })
    .reverse()
}

/** Where a stack repeats the message, that is no difference of the stack. */
const framesOf = ({ errorStack, errorMessage }: LetterAttempt): string =>
  (errorStack ?? '').replace(errorMessage, '')

/** Longer texts are compared as a whole: nobody reads marks in them. */
const MOST_WORDS = 2_000

/** `text` in pieces, those marked that `before` does not have in the same place. */
export function differences(before: string, text: string): readonly Piece[] {
  if (before === text) return [{ text, differs: false }]
  const [old, words] = [wordsOf(before), wordsOf(text)]
  if (Math.max(old.length, words.length) > MOST_WORDS) return [{ text, differs: true }]
  let head = 0
  while (head < old.length && head < words.length && old[head] === words[head]) head++
  let tail = 0
  const most = Math.min(old.length, words.length) - head
  while (tail < most && old.at(-1 - tail) === words.at(-1 - tail)) tail++
  // Messages that were made from one pattern have as many words; then each has its counterpart.
  const isPattern = old.length === words.length
  return joined(
    words.map((word, place) => ({
      text: word,
      differs: isPattern ? old[place] !== word : place >= head && place < words.length - tail,
    })),
  )
}

/** Words, what separates them, and nothing lost. */
const wordsOf = (text: string): readonly string[] => text.match(/[\p{L}\p{N}_]+|[^\p{L}\p{N}_]/gu) ?? []

function joined(pieces: readonly Piece[]): readonly Piece[] {
  const all: Piece[] = []
  for (const piece of pieces) {
    const last = all.at(-1)
    if (last?.differs === piece.differs) all[all.length - 1] = { ...last, text: last.text + piece.text }
    else all.push(piece)
  }
  return all
}
