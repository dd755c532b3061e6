/**
 * Exact counts of letters: per drawer and status, of each act in every minute and hour (activity), of what became of redrives. Every
 * transition adds signed changes in its own transaction: SQLite, with its single writer, adds to the totals; PostgreSQL appends deltas,
 * a folder adds them to the totals, and a read adds what is not folded yet. Nobody ever counts letters. A transaction pays for each
 * drawer, whatever the number of letters.
 */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql, type Transaction } from '../db/database.ts'
import { countFold } from '../db/fold.ts'
import { ACTIVITY, type ActivityName, GRAIN, HOUR_US, MINUTE_US, WHOLE_OFFICE } from './activity.ts'
import { type LetterId, STATUS } from './letter.ts'
import type { Outcomes } from './outcomes.ts'

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

/** Appends a change (PostgreSQL) or adds to the row of the redrive (SQLite). One row either way. */
const addOutcomes = sql('redriveOutcomes.add', {
  postgres: `INSERT INTO bartleby.redrive_outcome_deltas (redrive, confirmed, returned) VALUES ($1, $2, $3)`,
  sqlite: `INSERT INTO redrive_outcomes (redrive, confirmed, returned) VALUES ($1, $2, $3)
           ON CONFLICT (redrive) DO UPDATE SET confirmed = confirmed + excluded.confirmed, returned = returned + excluded.returned`,
})

/** The rows that something at the minute `at` belongs to, as a list of values; `hour` is that of the minute. */
const rowsOf = (at: string, hour: string, drawer: string): readonly (readonly string[])[] => [
  [String(GRAIN.minute), String(WHOLE_OFFICE), at],
  [String(GRAIN.hour), String(WHOLE_OFFICE), hour],
  [
    String(GRAIN.hour),
    `-coalesce((SELECT origin FROM bartleby.drawers WHERE drawers.id = ${drawer}), ${drawer})`,
    hour,
  ],
  [String(GRAIN.hour), drawer, hour],
  [String(GRAIN.ever), drawer, '0'],
]

/** Adds to the five rows of one act on one drawer: minute $1, hour $2, drawer $3, act $4, letters $5. By primary key. */
const addRows = sql('letterActivity.add', {
  postgres: '',
  sqlite: `INSERT INTO letter_activity (grain, subject, at, act, letters)
           VALUES ${rowsOf('$1', '$2', '$3')
             .map((row) => `(${row.join(', ')}, $4, $5)`)
             .join(', ')}
           ON CONFLICT (grain, subject, act, at) DO UPDATE SET letters = letters + excluded.letters`,
})

/** Appends the changes of a transaction. */
const addDeltas = sql('letterActivity.append', {
  postgres: `INSERT INTO bartleby.letter_activity_deltas (at, drawer, act, letters)
             SELECT $1, drawer, act, letters FROM unnest($2::int[], $3::int[], $4::bigint[]) AS acted (drawer, act, letters)`,
  sqlite: '',
})

interface Change {
  letters: number
  lastSeenAt: bigint
}

/** The changes of one transaction: one row per drawer and status, written just before its commit. */
export class LetterChanges {
  readonly #changes = new Map<string, Change>()
  readonly #acted = new Map<string, Acted>()
  readonly #toFile: { first: bigint; last: bigint }[] = []
  readonly #outcomes = new Map<number, { confirmed: number; returned: number }>()

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

  /** What happened to `count` letters of the drawer, for those who look at it over time. */
  acted(activity: ActivityName, drawer: number, count: number): void {
    if (count === 0) return
    const key = `${drawer} ${activity}`
    this.#acted.set(key, { drawer, activity, letters: (this.#acted.get(key)?.letters ?? 0) + count })
  }

  /** Letters that `redrive` sent back, if one did, came to an end; fewer than none: not to the one that was counted. */
  ended(redrive: Integer | null, outcome: keyof Outcomes, letters = 1): void {
    if (redrive === null) return
    const change = this.#outcomes.get(Number(redrive)) ?? { confirmed: 0, returned: 0 }
    change[outcome] += letters
    this.#outcomes.set(Number(redrive), change)
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
    for (const [redrive, { confirmed, returned }] of [...this.#outcomes].sort(([a], [b]) => a - b))
      tx.atCommit(addOutcomes, redrive, confirmed, returned)
    for (const { first, last } of joinedRanges(this.#toFile)) tx.atCommit(addRange, first, last)
  }
}

/** The start of the minute, hour or whatever `length` is, that `at` lies in. */
export const startOf = (at: bigint, length: bigint): bigint => at - (((at % length) + length) % length)

/** What one transaction did to the letters of a drawer. */
interface Acted {
  readonly drawer: number
  readonly activity: ActivityName
  readonly letters: number
}

/** Makes the activity part of the transaction, at the instant of its acts. */
function writeActivity(tx: Transaction, now: Instant, acted: readonly Acted[]): void {
  if (acted.length === 0) return
  const minute = startOf(now, MINUTE_US)
  if (tx.dialect === 'sqlite') {
    const hour = startOf(now, HOUR_US)
    for (const { drawer, activity, letters } of acted)
      tx.atCommit(addRows, minute, hour, drawer, ACTIVITY[activity], letters)
    return
  }
  const list = (numberOf: (each: Acted) => number) => acted.map(numberOf)
  tx.atCommit(
    addDeltas,
    minute,
    list(({ drawer }) => drawer),
    list(({ activity }) => ACTIVITY[activity]),
    list(({ letters }) => letters),
  )
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

/** How changes of activity are folded: each belongs to five rows. */
export const activityFold = countFold({
  name: 'letterActivity.fold',
  lock: 'letters.activityFold',
  deltas: 'bartleby.letter_activity_deltas',
  totals: 'bartleby.letter_activity',
  keys: ['grain', 'subject', 'act', 'at'],
  sums: ['letters'],
  spread: `SELECT each.grain, each.subject, taken.act, each.at, taken.letters FROM taken CROSS JOIN LATERAL (VALUES ${rowsOf(
    'taken.at',
    `taken.at - mod(taken.at, ${HOUR_US})`,
    'taken.drawer',
  )
    .map((row) => `(${row.join(', ')})`)
    .join(', ')}) AS each (grain, subject, at)`,
})
