/** Which letters a plan is about: those of a filter, page by page, or those named. */
import type { LetterId } from '../../letters/letter.ts'
import { type LetterFilter, planFilter } from '../../letters/lists/filter.ts'
import { readStretch } from '../../letters/lists/list.ts'
import type { Position, Stretch } from '../../letters/lists/positions.ts'
import { allLetters, walkLimit } from '../../letters/lists/scan.ts'
import { needleOf } from '../../letters/lists/search.ts'
import { totalOf } from '../../letters/lists/total.ts'
import type { LetterKey } from '../../letters/shapes.ts'
import { findNamed, type Sources } from '../../letters/source.ts'
import type { Database, Session, Snapshot } from '../../store/database.ts'
import type { RedriveAction, Selection } from '../redrive.ts'

interface Selected {
  readonly letters: readonly LetterId[]
  /** Names given more than once. */
  readonly duplicate: number
  /** Names without a letter. */
  readonly unknown: number
}

/** The filters of a plan: without a status, that of the action. */
function walkedFilters(filter: LetterFilter, action: RedriveAction): readonly LetterFilter[] {
  if (filter.status !== undefined || filter.outcome !== undefined) return [filter]
  if (action !== 'restore') return [{ ...filter, status: 'Pending' }]
  return [
    { ...filter, status: 'Resolved' },
    { ...filter, status: 'Expired' },
  ]
}

/** All letters of a selection, in bounded portions of one snapshot. */
export async function* selectLetters(
  session: Snapshot,
  sources: Sources,
  selection: Selection,
  action: RedriveAction,
): AsyncIterable<Selected> {
  if (selection.by === 'ids') {
    yield* named(session, sources, selection.ids)
    return
  }
  for (const filter of walkedFilters(selection.filter, action)) yield* matching(session, filter)
}

/** Whether a selection has more letters than this (at most 10,000), as far as that is quickly known. */
export async function isMoreThan(
  db: Database,
  selection: Selection,
  action: RedriveAction,
  letters: number,
): Promise<boolean> {
  if (selection.by === 'ids') return selection.ids.length > letters
  let sum = 0
  for (const filter of walkedFilters(selection.filter, action)) {
    const { total, exact } = await totalOf(db, filter)
    sum += exact ? total : total + 1
  }
  return sum > letters
}

const PORTION = 2_000

async function* matching(session: Snapshot, filter: LetterFilter): AsyncIterable<Selected> {
  const needle = filter.q === undefined ? null : needleOf(filter.q)
  const choice = await planFilter(session, filter)
  if (choice === null) return
  // Read once: in limited steps PostgreSQL may read and sort all of them for every step.
  const all = needle === null ? allLetters(session, choice) : null
  if (all !== null) {
    for await (const letters of all) yield { letters, duplicate: 0, unknown: 0 }
    return
  }
  const limit = Math.min(PORTION, walkLimit(choice))
  let below: Position | null = choice.span.below
  while (below !== null) {
    const stretch: Stretch = await readStretch(session, choice, below, needle, limit)
    below = stretch.end
    yield { letters: stretch.positions.map(({ id }) => id), duplicate: 0, unknown: 0 }
  }
}

/** Names looked up at once. */
const NAMES = 200

async function* named(
  session: Session,
  sources: Sources,
  keys: readonly LetterKey[],
): AsyncIterable<Selected> {
  const seen = new Set<LetterId>()
  for (let from = 0; from < keys.length; from += NAMES) {
    const some = keys.slice(from, from + NAMES)
    const found = await findAll(session, sources, some)
    const letters: LetterId[] = []
    for (const id of found) {
      if (!seen.has(id)) letters.push(id)
      seen.add(id)
    }
    yield { letters, duplicate: found.length - letters.length, unknown: some.length - found.length }
  }
}

async function findAll(session: Session, sources: Sources, keys: readonly LetterKey[]): Promise<LetterId[]> {
  const letters: LetterId[] = []
  for (const key of keys) {
    const id = await findNamed(session, sources, key)
    if (id !== null) letters.push(id)
  }
  return letters
}
