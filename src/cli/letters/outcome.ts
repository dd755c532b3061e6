/** What became of a letter that was sent back: looked up until it is known, or time is over. */
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterKey } from '../../client/letter-types.ts'
import { sleep } from '../../client/waiting.ts'
import type { OfficeServer } from '../office-call.ts'

/** Its item was completed; it is dead again; nothing was heard of it. */
export type Outcome = 'confirmed' | 'returned' | 'unconfirmed'

export interface Wait {
  readonly timeoutMs: number
  readonly stop: AbortSignal
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/** Waits until it is known what became of the letter. */
export async function waitForOutcome(
  office: OfficeServer,
  letter: LetterKey,
  { timeoutMs, stop }: Wait,
): Promise<Outcome> {
  const deadlineMs = performance.now() + timeoutMs
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    const outcome = await outcomeOf(office, letter)
    const leftMs = deadlineMs - performance.now()
    if (outcome !== 'unconfirmed' || leftMs <= 0 || stop.aborted) return outcome
    await sleep(Math.min(pauseMs, leftMs), stop)
  }
}

/** A letter that was sent is resolved by that; if it is anything else by now, it had come back in between. */
async function outcomeOf({ letters }: OfficeServer, letter: LetterKey): Promise<Outcome> {
  try {
    const { confirmedAtUtc, resolution } = await letters.get(letter)
    if (confirmedAtUtc !== null) return 'confirmed'
    return resolution === 'retry' ? 'unconfirmed' : 'returned'
  } catch (error) {
    // Retention removed it, or the server does not answer: it is not known. That it was sent stands all the same, and is to be told.
    if (error instanceof OfficeClientError) return 'unconfirmed'
    throw error
  }
}
