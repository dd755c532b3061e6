/**
 * One deed on many letters, from here: the list is walked and each letter acted on by itself, some at a time. Letters that
 * become pending meanwhile are newer than where the walk is, so no letter has its turn twice.
 */
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterItem, LetterKey } from '../../client/letter-types.ts'
import { sleep } from '../../client/waiting.ts'
import type { LetterParameters } from '../../core/letter-query.ts'
import { mapInOrder } from '../map-in-order.ts'
import { type OfficeServer, refusalText } from '../office-call.ts'
import type { Progress } from '../progress.ts'
import type { Deed } from './deeds.ts'
import { walkLetters } from './find.ts'

/** How many letters are acted on at once. */
export const AT_ONCE = 4
const SHOWN_FAILURES = 5

export interface Work {
  readonly deed: Deed
  readonly filter: LetterParameters
  readonly notes: string | undefined
  /** How many letters it is to be; null when that is not known exactly. */
  readonly planned: number | null
  /** Not more than so many; left out: all that match. */
  readonly most?: number | undefined
  /** Aborted: no letter is begun any more. */
  readonly stop: AbortSignal
  readonly progress: Progress
  /** Told of each letter that it was done to. */
  readonly onDone: (letter: LetterKey) => void
}

export interface FailedLetter extends LetterKey {
  readonly reason: string
}

/** What became of the letters; `planned` is the sum of the others. */
export interface Result {
  readonly planned: number
  readonly done: number
  /** They had another status, or were gone, when their turn came. */
  readonly skipped: number
  readonly failed: number
  /** Their turn never came. */
  readonly left: number
  /** The first that failed. */
  readonly failures: readonly FailedLetter[]
  /** It ended before every letter had its turn. Where it is not known how many they were, `left` cannot tell. */
  readonly stopped: boolean
  /** Why it did; null when it did not, or was asked to. */
  readonly leftBecause: string | null
}

/** The letter has moved on by itself. */
const MOVED_ON: readonly string[] = ['letter_status_wrong', 'letter_unknown']
/** Others have to go first: letters of a key leave in the order in which they came, while the walk goes backwards. */
const LATER: readonly string[] = ['letter_not_next', 'letter_service_busy']
/** With these, no other letter would fare better. */
const FINAL: readonly string[] = [
  'network',
  'timed_out',
  'unreadable_reply',
  'stopping',
  'path_unknown',
  'token_missing',
  'token_unknown',
  'role_insufficient',
]

/** Letters whose turn comes again are remembered up to this number; further ones count as failed. */
const MOST_LATER = 100_000
/** How often one that others keep busy is tried. */
const TRIES = 40
const PAUSE_MS = 250

/** Does it to the letters that match, the newest first. */
export async function actOnMany(office: OfficeServer, work: Work): Promise<Result> {
  const { deed, filter, planned, most, stop, progress, notes, onDone } = work
  const failures: FailedLetter[] = []
  const later: LetterItem[] = []
  const tally = { done: 0, skipped: 0, failed: 0 }
  let leftBecause: string | null = null
  const halted = () => stop.aborted || leftBecause !== null
  const isBegun = () => tally.done + tally.skipped + tally.failed + later.length > 0

  const fail = (letter: LetterItem, error: OfficeClientError) => {
    tally.failed += 1
    if (failures.length < SHOWN_FAILURES) {
      failures.push({ engine: letter.engine, rowKey: letter.rowKey, reason: refusalText(error) })
    }
  }
  /** Gives the error of a letter whose turn comes later. */
  const attempt = async (letter: LetterItem): Promise<OfficeClientError | null> => {
    if (halted()) return null
    try {
      await deed.perform(office, letter, notes)
      tally.done += 1
      onDone(letter)
    } catch (error) {
      if (!(error instanceof OfficeClientError)) throw error
      if (LATER.includes(error.code)) return error
      if (FINAL.includes(error.code)) leftBecause = refusalText(error)
      else if (MOVED_ON.includes(error.code)) tally.skipped += 1
      else fail(letter, error)
    }
    const tried = tally.done + tally.skipped + tally.failed
    progress.show(deed.during, tried, planned ?? tried, 'letters')
    return null
  }

  const letters = walkLetters(office.call, filter, planned ?? most)
  const first = mapInOrder(letters, AT_ONCE, async (letter) => {
    const postponed = await attempt(letter)
    if (postponed === null) return
    if (later.length < MOST_LATER) later.push(letter)
    else fail(letter, postponed)
  })
  try {
    for await (const _ of first) if (halted()) break
  } catch (error) {
    // The next page of the list cannot be had: what was done until then is accounted for all the same.
    if (!(error instanceof OfficeClientError) || !isBegun()) throw error
    leftBecause ??= refusalText(error)
  }

  // Its end is now known: what matched at the beginning and was not met any more has moved on.
  if (planned !== null && !halted()) {
    tally.skipped += planned - (tally.done + tally.skipped + tally.failed + later.length)
  }
  // One at a time, the oldest first: as the letters of a key have to leave.
  for (let letter = later.pop(); letter !== undefined && !halted(); letter = later.pop()) {
    let postponed = await attempt(letter)
    for (let tries = 1; postponed?.code === 'letter_service_busy' && tries < TRIES && !halted(); tries++) {
      await sleep(PAUSE_MS, stop)
      postponed = await attempt(letter)
    }
    if (postponed !== null) fail(letter, postponed)
  }
  const tried = tally.done + tally.skipped + tally.failed
  const all = planned ?? tried
  const stopped = planned === null ? halted() : all > tried
  return { planned: all, ...tally, left: all - tried, stopped, failures, leftBecause }
}
