/**
 * Which letters of a batch go out: those still as planned, repairable, and not due after one that stays. The batch ends before the first
 * letter that cannot be decided yet.
 */
import { contentPortions, type KeptEdit, readContents } from '../../letters/contents.ts'
import { goesToQueues } from '../../letters/kinds.ts'
import type { LetterId } from '../../letters/letter.ts'
import {
  addToKey,
  type BulkLetter,
  type CapturePlace,
  firstOthers,
  isBefore,
  type LettersOfKey,
  lockBulkLetters,
  mixedKeys,
} from '../../letters/lists/bulk-letters.ts'
import type { Session, Transaction } from '../../store/database.ts'
import { placeOf } from '../planning/destinations.ts'
import { type Exception, type ExceptionReason, isSending, type Redrive } from '../redrive.ts'
import type { Repairer } from '../repair/repairer.ts'
import { type Lane, readLanes, remainingOf } from '../rows/lanes.ts'
import { type LaneLetter, lettersAhead, nextLetters } from '../rows/members.ts'
import { openRedrives, type StoredRedrive } from '../rows/rows.ts'

interface Eligibility {
  /** In lane order. */
  readonly fit: readonly BulkLetter[]
  readonly exceptions: readonly Exception[]
}

interface EligibilitySoFar extends Eligibility {
  /** The first letter that cannot be decided yet. */
  readonly next: LetterId | null
}

export const skipped = (
  letter: LetterId,
  reason: ExceptionReason,
  detail: string | null = null,
): Exception => ({
  letter,
  outcome: 'skipped',
  reason,
  detail,
})

/** Locks the letters; leaves out those that changed since the plan and those of earlier redrives. */
export async function lockEligible(
  tx: Transaction,
  redrive: StoredRedrive,
  letters: readonly LaneLetter[],
): Promise<Eligibility> {
  const ids = letters.map(({ letter }) => letter)
  const [candidates, others] = await Promise.all([lockBulkLetters(tx, ids), startedBefore(tx, redrive)])
  const taken = await lettersAhead(tx, ids, others)
  const fit: BulkLetter[] = []
  const exceptions: Exception[] = []
  for (const { letter, version } of letters) {
    const candidate = candidates.get(letter)
    if (candidate === undefined) exceptions.push(skipped(letter, 'gone'))
    else if (candidate.version !== version) exceptions.push(skipped(letter, 'changed'))
    else if (candidate.isLeased) exceptions.push(skipped(letter, 'leased'))
    else if (taken.has(letter)) exceptions.push(skipped(letter, 'in_other_redrive'))
    else fit.push(candidate)
  }
  return { fit, exceptions }
}

/** A letter in two redrives is left to the one that was started first. */
async function startedBefore(session: Session, { number, startedAt }: StoredRedrive) {
  const open = await openRedrives(session)
  return open
    .filter((other) => {
      if (other.number === number || other.startedAt === null || startedAt === null) return false
      if (other.startedAt !== startedAt) return other.startedAt < startedAt
      return other.number < number
    })
    .map((other) => other.number)
}

interface RepairedLetters extends EligibilitySoFar {
  readonly edits: ReadonlyMap<LetterId, KeptEdit>
}

/** Longest repair of a batch: whoever pauses or cancels waits for it, and on SQLite every writer. */
const REPAIR_MS = 250

export const isChanged = ({ payload, headers }: Omit<KeptEdit, 'id'>): boolean =>
  payload !== null || Object.keys(headers).length > 0

/** Applies the recipe; leaves out letters that refuse it. */
export async function repairLetters(
  session: Session,
  { recipe }: Redrive,
  { source }: Lane,
  repairer: Repairer,
  letters: readonly BulkLetter[],
): Promise<RepairedLetters> {
  if (recipe === null || letters.length === 0)
    return { fit: letters, exceptions: [], edits: new Map(), next: null }
  const [portion = []] = await contentPortions(
    session,
    letters.map(({ id }) => id),
  )
  const contents = await readContents(session, portion)
  const repairable = portion.map((id) => {
    const content = contents.get(id)
    if (content === undefined) throw new Error(`letter ${id} is gone although it was locked`)
    return { ...content, source }
  })
  const results = await repairer.repair(recipe, repairable, { forMs: REPAIR_MS })
  const fit: BulkLetter[] = []
  const exceptions: Exception[] = []
  const edits = new Map<LetterId, KeptEdit>()
  for (const [i, result] of results.entries()) {
    const letter = letters[i]
    if (letter === undefined) break
    const { id } = letter
    if (!result.ok) {
      exceptions.push(skipped(id, 'repair_refused', result.reason))
      continue
    }
    fit.push(letter)
    if (isChanged(result.repaired)) edits.set(id, { id, ...result.repaired })
  }
  return { fit, exceptions, edits, next: letters[results.length]?.id ?? null }
}

/**
 * Leaves out letters of a key with an earlier one pending. Where that one is in this redrive, on its way elsewhere, they wait for its
 * turn.
 */
export async function keepOrder(
  session: Session,
  { number, action, terms }: Redrive,
  { source, engine }: Lane,
  batch: readonly LaneLetter[],
  letters: readonly BulkLetter[],
): Promise<EligibilitySoFar> {
  const all = { fit: letters, exceptions: [], next: null }
  if (!isSending(action) || terms.order !== 'key' || !goesToQueues(source)) return all
  const keys = new Map<string, LettersOfKey>()
  for (const letter of letters) if (letter.key !== null) addToKey(keys, letter.key, letter)
  const mixed = await mixedKeys(session, engine, [...keys.values()])
  if (mixed.size === 0) return all
  const keyed = letters.flatMap(({ id, key }) => (key !== null && mixed.has(key) ? [{ id, key }] : []))
  const firsts = await firstOthers(session, engine, keyed)
  const held = letters.filter((letter) => isHeldBack(letter, firsts))
  if (held.length === 0) return all
  const inBatch = new Set(batch.map(({ letter }) => letter))
  const others = [...firsts.values()].map(({ id }) => id).filter((id) => !inBatch.has(id))
  const ahead = await lettersAhead(session, others, [number])
  // Another lane may have sent one between these looks; a key with another first letter now is left to the next batch.
  const firstsNow = await firstOthers(session, engine, keyed)
  const waits = held.find(({ key }) => {
    const first = key === null ? undefined : firsts.get(key)
    return first !== undefined && (ahead.has(first.id) || firstsNow.get(key ?? '')?.id !== first.id)
  })
  const heldIds = new Set(held.map(({ id }) => id))
  return {
    fit: letters.filter(({ id }) => !heldIds.has(id)),
    exceptions: held.map(({ id }) => skipped(id, 'order_blocked')),
    next: waits?.id ?? null,
  }
}

/** The first letter that must wait for another lane to the same place, where all go out in capture order. */
export async function firstOutOfTurn(
  session: Session,
  { number, action, terms }: Redrive,
  lane: Lane,
  letters: readonly LaneLetter[],
): Promise<LetterId | null> {
  if (!isSending(action) || terms.order !== 'capture') return null
  const others = (await readLanes(session, [number])).filter(
    (other) => other.lane !== lane.lane && placeOf(other) === placeOf(lane) && remainingOf(other) > 0,
  )
  let waits: LaneLetter | undefined
  for (const other of others) {
    const [head] = await nextLetters(session, other, other.behind, 1)
    const later = letters.find((letter) => head !== undefined && isBefore(captured(head), captured(letter)))
    if (later !== undefined && (waits === undefined || isBefore(captured(later), captured(waits))))
      waits = later
  }
  return waits?.letter ?? null
}

const captured = ({ capturedAt, letter }: LaneLetter): CapturePlace => ({ capturedAt, id: letter })

const isHeldBack = (letter: BulkLetter, firsts: ReadonlyMap<string, CapturePlace>): boolean => {
  const first = letter.key === null ? undefined : firsts.get(letter.key)
  return first !== undefined && isBefore(first, letter)
}
