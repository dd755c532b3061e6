/**
 * Exact counts of letters per drawer and status. Every transition adds a signed change in its own transaction: SQLite,
 * with its single writer, adds to the totals; PostgreSQL appends a delta, a folder adds the deltas to the totals, and
 * a read adds what is not folded yet. Nobody ever counts letters.
 */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql, type Transaction } from '../db/database.ts'
import { countFold } from '../db/fold.ts'
import { type Acted, type ActivityName, writeActivity } from './activity.ts'
import { type LetterId, STATUS } from './letter.ts'
import { OutcomeChanges, type Outcomes } from './outcomes.ts'

const COLUMNS = 'drawer, status, letters, last_seen_at'

/** Appends one delta row (PostgreSQL) or adds to the totals (SQLite). One row either way. */
const addChange = sql('letterCounts.add', {
  postgres: `INSERT INTO bartleby.letter_deltas (${COLUMNS}) VALUES ($1, $2, $3, $4)`,
  sqlite: `INSERT INTO letter_totals (${COLUMNS}) VALUES ($1, $2, $3, $4)
           ON CONFLICT (drawer, status) DO UPDATE SET letters = letters + excluded.letters,
             last_seen_at = max(last_seen_at, excluded.last_seen_at)`,
})

const addRange = sql(
  'letterCounts.toFile',
  'INSERT INTO bartleby.letters_to_file (first_letter, last_letter) VALUES ($1, $2)',
)

interface Change {
  letters: number
  lastSeenAt: bigint
}

/** The changes of one transaction: one row per drawer and status, written just before its commit. */
export class LetterChanges {
  readonly #changes = new Map<string, Change>()
  readonly #acted = new Map<string, Acted>()
  readonly #toFile: { first: bigint; last: bigint }[] = []
  readonly #outcomes = new OutcomeChanges()

  /** `letters` more (or fewer) with this status; `seenAt` is the newest failure among them, when there is a new one. */
  add(drawer: number, status: number, letters: number, seenAt: Instant | null = null): void {
    const key = `${drawer} ${status}`
    const change = this.#changes.get(key) ?? { letters: 0, lastSeenAt: 0n }
    change.letters += letters
    if (seenAt !== null && seenAt > change.lastSeenAt) change.lastSeenAt = seenAt
    this.#changes.set(key, change)
  }

  /** `count` letters were captured into the drawer. */
  captured(drawer: number, count: number, seenAt: Instant): void {
    this.add(drawer, STATUS.Pending, count, seenAt)
    this.add(drawer, STATUS.captured, count)
    this.acted('arrived', drawer, count)
  }

  /** `count` pending letters were sent back. */
  retried(drawer: number, count: number): void {
    this.add(drawer, STATUS.Pending, -count)
    this.add(drawer, STATUS.Resolved, count)
    this.add(drawer, STATUS.unconfirmed, count)
    this.acted('retried', drawer, count)
  }

  /** What happened to `count` letters of the drawer, for those who look at it over time. */
  acted(activity: ActivityName, drawer: number, count: number): void {
    if (count === 0) return
    const key = `${drawer} ${activity}`
    this.#acted.set(key, { drawer, activity, letters: (this.#acted.get(key)?.letters ?? 0) + count })
  }

  /** A letter that `redrive` sent back, if one did, came to an end; -1: not to the one that was counted. */
  ended(redrive: Integer | null, outcome: keyof Outcomes, letters: 1 | -1 = 1): void {
    this.#outcomes.add(redrive, outcome, letters)
  }

  /** One letter changed its status, and its drawer when it failed anew with another error. */
  moved(from: { drawer: number; status: number }, to: { drawer: number; status: number }): void {
    this.add(from.drawer, from.status, -1)
    this.add(to.drawer, to.status, 1)
  }

  /** The texts of these letters are new and have to be made searchable. */
  toFile(first: LetterId, last: LetterId): void {
    this.#toFile.push({ first, last })
  }

  /** Makes the changes part of the transaction, whose acts are of `now`. Call it last. */
  write(tx: Transaction, now: Instant): void {
    for (const [key, { letters, lastSeenAt }] of [...this.#changes].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (letters === 0 && lastSeenAt === 0n) continue
      const [drawer = 0, status = 0] = key.split(' ').map(Number)
      tx.atCommit(addChange, drawer, status, letters, lastSeenAt)
    }
    writeActivity(tx, now, [...this.#acted.values()])
    this.#outcomes.write(tx)
    for (const { first, last } of joinedRanges(this.#toFile)) tx.atCommit(addRange, first, last)
  }
}

/** Letters that are filed again for nothing cost less than a row for every gap. */
const MAX_GAP = 100n

/** The ranges in order, those joined that are close to each other. */
function joinedRanges(ranges: readonly { first: bigint; last: bigint }[]): { first: bigint; last: bigint }[] {
  const joined: { first: bigint; last: bigint }[] = []
  for (const { first, last } of [...ranges].sort((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = joined.at(-1)
    if (before === undefined || first > before.last + MAX_GAP) joined.push({ first, last })
    else if (last > before.last) before.last = last
  }
  return joined
}

const PACKED = "drawer || ' ' || status || ' ' || letters || ' ' || last_seen_at, ','"

/**
 * Totals plus the unfolded tail, in one snapshot. Cost: one row per drawer and status, and the tail. The counts come as
 * one text: a row for each took most of the time of reading them.
 */
const readAll = sql('letterCounts.read', {
  postgres: `SELECT string_agg(${PACKED}) AS counts FROM (
               SELECT drawer, status, sum(letters) AS letters, max(last_seen_at) AS last_seen_at FROM (
                 SELECT ${COLUMNS} FROM bartleby.letter_totals
                 UNION ALL
                 SELECT ${COLUMNS} FROM bartleby.letter_deltas
               ) AS counted GROUP BY drawer, status
             ) AS summed`,
  sqlite: `SELECT group_concat(${PACKED}) AS counts FROM letter_totals`,
})

/** How many letters of one drawer have one status (`STATUS`); the newest failure that was ever filed there. */
export interface DrawerCount {
  readonly drawer: number
  readonly status: number
  readonly letters: number
  readonly lastSeenAt: Instant
}

/** Every count there is. */
export async function readLetterCounts(session: Session): Promise<DrawerCount[]> {
  const [row] = await session.rows<{ counts: string | null }>(readAll)
  if (row?.counts == null) return []
  return row.counts.split(',').map((packed) => {
    const [drawer, status, letters, lastSeenAt = '0'] = packed.split(' ')
    return {
      drawer: Number(drawer),
      status: Number(status),
      letters: Number(letters),
      lastSeenAt: instant(BigInt(lastSeenAt)),
    }
  })
}

/** How the deltas of letter counts are folded. */
export const letterFold = countFold({
  name: 'letterCounts.fold',
  lock: 'letters.fold',
  deltas: 'bartleby.letter_deltas',
  totals: 'bartleby.letter_totals',
  keys: ['drawer', 'status'],
  sums: ['letters'],
  latest: ['last_seen_at'],
})
