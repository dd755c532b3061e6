/** What became of letters that were sent: looked up until it is known of all, or for some minutes. */
import { call, pathTo } from '../api/call.ts'
import type { LetterDetail, LetterItem, LetterKey } from '../api/types.ts'
import type { RunOutcomes } from './run.ts'

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 15_000
const LOOKED_FOR_MS = 5 * 60_000
const AT_ONCE = 4

type Outcome = 'confirmed' | 'returned' | null

/** A letter that was sent is resolved by that; if it is anything else by now, it had come back in between. */
export const outcomeOf = ({
  resolution,
  confirmedAtUtc,
}: Pick<LetterItem, 'resolution' | 'confirmedAtUtc'>): Outcome =>
  confirmedAtUtc !== null ? 'confirmed' : resolution === 'retry' ? null : 'returned'

/** Looks until `signal` says otherwise, and tells each time what is known. */
export async function watchOutcomes(
  sent: readonly LetterKey[],
  signal: AbortSignal,
  tell: (outcomes: RunOutcomes) => void,
): Promise<void> {
  const known = { confirmed: 0, returned: 0 }
  const endsAtMs = Date.now() + LOOKED_FOR_MS
  let unknown = sent
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    const still: LetterKey[] = []
    await eachAtOnce(unknown, async (letter) => {
      const outcome = signal.aborted ? null : await lookAt(letter, signal)
      if (outcome === null) still.push(letter)
      else known[outcome]++
    })
    if (signal.aborted) return
    unknown = still
    const isFinal = unknown.length === 0 || Date.now() >= endsAtMs
    tell({ asked: sent.length, ...known, isFinal })
    if (isFinal) return
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** null when it is not known: not yet, or because the letter cannot be read. */
async function lookAt({ engine, rowKey }: LetterKey, signal: AbortSignal): Promise<Outcome> {
  try {
    return outcomeOf(await call<LetterDetail>('GET', pathTo('/api/dlq', engine, rowKey), { signal }))
  } catch {
    return null
  }
}

/** Does it with each, some at once. */
export async function eachAtOnce<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index]
      if (item !== undefined) await work(item, index)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}
