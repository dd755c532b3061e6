/**
 * Exact counts of letters: per place and status, per drawer and status, of acts per minute and hour (activity), of outcomes of redrives.
 * Each transition adds signed changes in its transaction; nothing counts letters. A transaction pays per drawer, not per letter.
 */

import type { Instant } from '../../core/clock.ts'
import { counter } from '../../store/counter.ts'
import { type Integer, type Session, sql, type Transaction } from '../../store/database.ts'
import { type LetterId, STATUS } from '../letter.ts'
import { ACTIVITY_NAMES, type ActivityName } from './shapes.ts'

/** As stored. */
export const ACTIVITY: Readonly<Record<ActivityName, number>> = {
  arrived: 0,
  retried: 1,
  confirmed: 2,
  returned: 3,
  discarded: 4,
  expired: 5,
}

export const ofEachActivity = <Of>(of: (name: ActivityName) => Of): Record<ActivityName, Of> =>
  // All names are there.
  Object.fromEntries(ACTIVITY_NAMES.map((name) => [name, of(name)])) as Record<ActivityName, Of>

/** Acts are counted beside the statuses, for ever; arrivals are captures. */
export const EVER: Readonly<Record<ActivityName, number>> = {
  arrived: STATUS.captured,
  retried: 6,
  confirmed: 7,
  returned: 8,
  discarded: 9,
  expired: 10,
}

export const MINUTE_US = 60_000_000n
export const HOUR_US = 60n * MINUTE_US
export const DAY_US = 24n * HOUR_US

export const WHOLE_OFFICE = 0

const acts = (changes: string): string =>
  `SELECT place, drawer, at, letters, CASE status WHEN ${STATUS.captured} THEN 0 ELSE status - ${STATUS.unconfirmed} END AS act
   FROM ${changes} WHERE status IN (${Object.values(EVER).join(', ')})`

/** Rows of an act: of the office, its place and its drawer. */
const hours = (changes: string): string =>
  [String(WHOLE_OFFICE), '-place', 'drawer']
    .map(
      (subject) =>
        `SELECT ${subject} AS subject, act, at - at % ${HOUR_US} AS at, letters FROM (${acts(changes)}) AS acts`,
    )
    .join(' UNION ALL ')

const COUNTS = { sums: ['letters'], latest: ['last_seen_at'] }

/**
 * A change locks its drawer until the commit; if the drawer is gone, its place is NULL and the transaction runs again. Captures and
 * removals are counted at places alone, so they outlive the drawer.
 */
export const letterCounter = counter({
  name: 'letterCounts',
  lock: 'letters.foldChanges',
  deltas: 'letter_changes',
  given: { drawer: 'int', status: 'smallint', at: 'bigint', letters: 'bigint', last_seen_at: 'bigint' },
  looked: {
    place: '(SELECT place FROM bartleby.drawers WHERE drawers.id = change.drawer FOR KEY SHARE)',
  },
  totals: {
    places: { ...COUNTS, table: 'place_totals', keys: ['place', 'status'] },
    drawers: {
      ...COUNTS,
      table: 'letter_totals',
      keys: ['drawer', 'status'],
      spread: (changes) =>
        `SELECT drawer, status, letters, last_seen_at FROM ${changes} WHERE status NOT IN (${STATUS.removed}, ${STATUS.captured})`,
    },
    minutes: {
      table: 'letter_minutes',
      keys: ['act', 'at'],
      sums: ['letters'],
      spread: (changes) => `SELECT act, at, letters FROM (${acts(changes)}) AS acts`,
    },
    hours: { table: 'letter_hours', keys: ['subject', 'act', 'at'], sums: ['letters'], spread: hours },
  },
})

export interface Outcomes {
  readonly confirmed: number
  readonly returned: number
}

export const outcomeCounter = counter({
  name: 'redriveOutcomes',
  lock: 'redrives.outcomeFold',
  deltas: 'redrive_outcome_deltas',
  given: { redrive: 'int', confirmed: 'bigint', returned: 'bigint' },
  totals: {
    redrives: { table: 'redrive_outcomes', keys: ['redrive'], sums: ['confirmed', 'returned'] },
  },
})

const addRange = sql(
  'letterCounts.toFile',
  'INSERT INTO bartleby.letters_to_file (first_letter, last_letter) VALUES ($1, $2)',
)

interface Change {
  letters: number
  lastSeenAt: bigint
}

/** Changes of one transaction: one row per drawer and status, written just before the commit. */
export class LetterChanges {
  readonly #changes = new Map<string, Change>()
  readonly #toFile: { first: bigint; last: bigint }[] = []
  readonly #outcomes = new Map<number, { confirmed: number; returned: number }>()

  /** `seenAt`: the newest new failure among them. */
  add(drawer: number, status: number, letters: number, seenAt: Instant | null = null): void {
    const key = `${drawer} ${status}`
    const change = this.#changes.get(key) ?? { letters: 0, lastSeenAt: 0n }
    change.letters += letters
    if (seenAt !== null && seenAt > change.lastSeenAt) change.lastSeenAt = seenAt
    this.#changes.set(key, change)
  }

  captured(drawer: number, count: number, seenAt: Instant): void {
    this.add(drawer, STATUS.Pending, count, seenAt)
    this.acted('arrived', drawer, count)
  }

  acted(activity: ActivityName, drawer: number, count: number): void {
    this.add(drawer, EVER[activity], count)
  }

  /** Outcome of letters that a redrive sent back; a negative number takes one back. */
  ended(redrive: Integer | null, outcome: keyof Outcomes, letters = 1): void {
    if (redrive === null) return
    const change = this.#outcomes.get(Number(redrive)) ?? { confirmed: 0, returned: 0 }
    change[outcome] += letters
    this.#outcomes.set(Number(redrive), change)
  }

  /** Letters whose texts must be filed for search. */
  toFile(first: LetterId, last: LetterId): void {
    this.#toFile.push({ first, last })
  }

  /** Call it last. */
  write(tx: Transaction, now: Instant): void {
    const minute = startOf(now, MINUTE_US)
    const changes = [...this.#changes]
      .filter(([, { letters, lastSeenAt }]) => letters !== 0 || lastSeenAt !== 0n)
      .map(([key, { letters, lastSeenAt }]) => {
        const [drawer = 0, status = 0] = key.split(' ').map(Number)
        return [drawer, status, minute, letters, lastSeenAt] as const
      })
    letterCounter.add(
      tx,
      changes.sort(([a, x], [b, y]) => a - b || x - y),
    )
    const ends = [...this.#outcomes].sort(([a], [b]) => a - b)
    outcomeCounter.add(
      tx,
      ends.map(([redrive, { confirmed, returned }]) => [redrive, confirmed, returned]),
    )
    for (const { first, last } of joinedRanges(this.#toFile)) tx.atCommit(addRange, first, last)
  }
}

/** Start of the span of `length` that holds `at`. */
export const startOf = (at: bigint, length: bigint): bigint => at - (((at % length) + length) % length)

/** Filing a letter again for nothing costs less than a row per gap. */
const MAX_GAP = 100n

function joinedRanges(ranges: readonly { first: bigint; last: bigint }[]): { first: bigint; last: bigint }[] {
  const joined: { first: bigint; last: bigint }[] = []
  for (const { first, last } of [...ranges].sort((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = joined.at(-1)
    if (before === undefined || first > before.last + MAX_GAP) joined.push({ first, last })
    else if (last > before.last) before.last = last
  }
  return joined
}

/** Every drawer and status, and the unfolded tail. */
const readAll = letterCounter.read(
  'letterCounts.read',
  'drawers',
  (counted) => `SELECT drawer, status, sum(letters) AS letters FROM ${counted} GROUP BY drawer, status`,
)

/** Letters of a drawer with a status (`STATUS`), or ever acted on (`EVER`). */
export type DrawerCount = Readonly<Record<'drawer' | 'status' | 'letters', number>>

/** For `verify`. */
export async function readLetterCounts(session: Session): Promise<DrawerCount[]> {
  const rows = await session.rows<Readonly<Record<keyof DrawerCount, Integer>>>(readAll)
  return rows.map((row) => ({
    drawer: Number(row.drawer),
    status: Number(row.status),
    letters: Number(row.letters),
  }))
}

/** By primary key, and the unfolded tail. */
const readOutcomes = outcomeCounter.read(
  'redriveOutcomes.read',
  'redrives',
  (counted) =>
    `SELECT redrive, sum(confirmed) AS confirmed, sum(returned) AS returned FROM ${counted} GROUP BY redrive`,
  { where: 'redrive = ANY($1::int[])' },
)

/** Redrives without an outcome yet are left out. */
export async function outcomesOf(
  session: Session,
  redrives: readonly number[],
): Promise<ReadonlyMap<number, Outcomes>> {
  if (redrives.length === 0) return new Map()
  const rows = await session.rows<{ redrive: Integer; confirmed: Integer; returned: Integer }>(
    readOutcomes,
    redrives,
  )
  return new Map(
    rows.map((row) => [
      Number(row.redrive),
      { confirmed: Number(row.confirmed), returned: Number(row.returned) },
    ]),
  )
}
