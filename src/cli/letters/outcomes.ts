/** What became of letters that were sent back: looked up until it is known of all of them, or time is over. */
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterKey } from '../../client/letter-types.ts'
import { sleep } from '../../client/waiting.ts'
import { mapInOrder } from '../map-in-order.ts'
import type { OfficeServer } from '../office-call.ts'
import type { Progress } from '../progress.ts'
import { AT_ONCE } from './many.ts'

export interface Outcomes {
  /** Their items were completed. */
  readonly confirmed: number
  /** They are dead again. */
  readonly returned: number
  /** Nothing was heard of them. */
  readonly unconfirmed: number
}

export interface Wait {
  readonly timeoutMs: number
  readonly stop: AbortSignal
  readonly progress: Progress
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/** Waits until it is known what became of each letter. */
export async function waitForOutcomes(
  office: OfficeServer,
  sent: readonly LetterKey[],
  { timeoutMs, stop, progress }: Wait,
): Promise<Outcomes> {
  const deadlineMs = performance.now() + timeoutMs
  const tally = { confirmed: 0, returned: 0 }
  let unknown = sent
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    const still: LetterKey[] = []
    const looks = mapInOrder(each(unknown), AT_ONCE, async (letter) => ({
      letter,
      // Asked to end, nobody waits for thousands of answers more.
      outcome: stop.aborted ? null : await outcomeOf(office, letter),
    }))
    for await (const { letter, outcome } of looks) {
      if (outcome === null) still.push(letter)
      else tally[outcome] += 1
      progress.show('waiting for outcomes', tally.confirmed + tally.returned, sent.length, 'letters')
    }
    unknown = still
    const leftMs = deadlineMs - performance.now()
    if (unknown.length === 0 || leftMs <= 0 || stop.aborted) {
      return { ...tally, unconfirmed: unknown.length }
    }
    await sleep(Math.min(pauseMs, leftMs), stop)
  }
}

/** A letter that was sent is resolved by that; if it is anything else by now, it had come back in between. */
async function outcomeOf(
  { letters }: OfficeServer,
  letter: LetterKey,
): Promise<'confirmed' | 'returned' | null> {
  try {
    const { confirmedAtUtc, resolution } = await letters.get(letter)
    if (confirmedAtUtc !== null) return 'confirmed'
    return resolution === 'retry' ? null : 'returned'
  } catch (error) {
    // Retention removed it, or the server does not answer: it is not known. That it was sent stands all the same, and is to be told.
    if (error instanceof OfficeClientError) return null
    throw error
  }
}

async function* each<Item>(items: readonly Item[]): AsyncGenerator<Item, void, undefined> {
  yield* items
}
