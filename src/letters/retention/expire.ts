/**
 * Bulk expiry: pending letters whose last failure is long ago, oldest first. It is a kind of run: every step is a transaction of
 * its own with its history rows and counts, and between steps everybody else has the store, so no writer waits for the whole.
 * Letters that a consumer of their dead queue holds, or that somebody else works on, are left alone.
 */
import { type Instant, instant } from '../../core/clock.ts'
import { formatMicros } from '../../core/timestamp.ts'
import type { Xid } from '../../core/xid.ts'
import { type Session, type Statement, sql } from '../../store/database.ts'
import { at, integer, type RowOf, rowShape, text } from '../../store/row.ts'
import type { RunKind, RunRequest } from '../../work/run.ts'
import { change } from '../change.ts'
import type { SourceName } from '../kinds.ts'
import { STATUS } from '../letter.ts'
import { PLACED, placeOf } from '../lists/detail.ts'
import type { DrawerLabels } from '../numbers/find-drawers.ts'
import { readHoldingDrawers } from '../numbers/summary.ts'
import type { LetterSource } from '../source.ts'
import type { OfficeWork } from '../work.ts'

export interface Expiry {
  /** Letters whose last failure is older than this expire. */
  readonly before: Instant
  /** null: of every engine. */
  readonly engine: string | null
  readonly actor: string
}

/**
 * Letters of one transaction, which is how long a writer may have to wait. On two cores that four times as much work
 * was fighting for, 250 took 28 ms on SQLite and 61 ms on PostgreSQL.
 */
export const EXPIRE_BATCH = 250

const OLD = rowShape({ ...PLACED, drawer: integer, lastFailureAt: at, engine: text })
type Old = RowOf<typeof OLD>

/**
 * The oldest `$4` letters of a lane behind ($2, $3), in the order of the lane's index, so nothing is sorted and what
 * was expired before is not met again. Rows that others have locked are skipped, hence no deadlocks.
 */
const nextInLane = (name: string, index: string, lane: string): Statement =>
  sql(
    name,
    `SELECT ${OLD.columns} FROM bartleby.letters INDEXED BY ${index} WHERE ${lane} LIMIT $4 FOR UPDATE SKIP LOCKED`,
    { bigints: true },
  )

const nextOfAll = nextInLane(
  'letters.nextToExpire',
  'letters_newest',
  `(status, last_failure_at, id) > (${STATUS.Pending}, $2, $3) AND (status, last_failure_at) < (${STATUS.Pending}, $1)
   AND leased < 1 ORDER BY status, last_failure_at, id`,
)
/** As a range: under equalities PostgreSQL takes any order by time as good, and may walk past all other drawers. */
const nextOfDrawer = nextInLane(
  'letters.nextToExpireInDrawer',
  'letters_in_drawer',
  `(drawer, status, last_failure_at, id) > ($5, ${STATUS.Pending}, $2, $3)
   AND (drawer, status, last_failure_at) < ($5, ${STATUS.Pending}, $1) AND leased < 1
   ORDER BY drawer, status, last_failure_at, id`,
)

/** Where a lane goes on: behind this letter. */
interface Cursor {
  readonly lastFailureAt: bigint
  readonly id: bigint
}

const START: Cursor = { lastFailureAt: -(2n ** 63n), id: 0n }

const EXPIRE = 'expire'

/** As it is kept: JSON has no numbers for instants. */
interface Subject {
  readonly before: string
  readonly engine: string | null
}

interface Place {
  /** The lane it is in; null before the first, and in the one lane of all letters. */
  readonly drawer: number | null
  readonly lastFailureAt: string
  readonly id: string
}

export function expiryRequest({ before, engine, actor }: Expiry): RunRequest<Subject, Place> {
  const of = engine === null ? 'letters' : `letters of engine ${engine}`
  return {
    kind: EXPIRE,
    about: `${of} that failed last before ${formatMicros(before)}`,
    subject: { before: `${before}`, engine },
    place: laneFrom(null, START),
    actor,
  }
}

const laneFrom = (drawer: number | null, { lastFailureAt, id }: Cursor): Place => ({
  drawer,
  lastFailureAt: `${lastFailureAt}`,
  id: `${id}`,
})

/** Lanes of one step: an engine may have thousands that hold nothing old. */
const MOST_LANES = 100
/** Runs whose lanes are remembered. */
const MOST_REMEMBERED = 20

/** The sources of letters, and what tells which is whose: an expiry makes no drawers. */
interface Ways {
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly labels: DrawerLabels
}

/** How old letters are expired; each leaves its dead queue through its own source. */
export function expiryKind(ways: Ways): RunKind<OfficeWork, Subject, Place> {
  // What is forgotten is read again.
  const known = new Map<Xid, readonly (number | null)[]>()
  return {
    kind: EXPIRE,
    batch: EXPIRE_BATCH,
    // A caller waits for it, and no writer waits longer than for one batch: with the usual rest it took ten times as long.
    rest: 0,
    // Letters of a source that is particular about who acts on them are of an engine of its name.
    sourcesOf: ({ subject: { engine } }) => (engine === null ? null : [engine]),
    step: async (work, { id, actor, subject, place }, most) => {
      const { engine } = subject
      const expiry = { before: instant(BigInt(subject.before)), engine, actor }
      const lanes = known.get(id) ?? (await readLanes(work.tx, engine))
      if (known.size >= MOST_REMEMBERED) known.clear()
      known.set(id, lanes)
      const left = lanes.filter((drawer) => (drawer ?? 0) >= (place.drawer ?? 0))
      let cursor: Cursor = { lastFailureAt: BigInt(place.lastFailureAt), id: BigInt(place.id) }
      let done = 0
      for (const drawer of left.slice(0, MOST_LANES)) {
        if (drawer !== place.drawer) cursor = START
        const batch = await expireBatch(work, ways, expiry, drawer, cursor, most - done)
        done += batch.expired
        if (batch.next !== null) return { place: laneFrom(drawer, batch.next), done, next: 'more' }
      }
      const further = left[MOST_LANES]
      if (further !== undefined) return { place: laneFrom(further, START), done, next: 'more' }
      known.delete(id)
      return { done, next: 'finished' }
    },
  }
}

/** The drawers that hold pending letters of an engine, in the order of their numbers; null is the one lane of all letters. */
async function readLanes(session: Session, engine: string | null): Promise<readonly (number | null)[]> {
  if (engine === null) return [null]
  const drawers = await readHoldingDrawers(session, { engine })
  return drawers
    .filter(({ letters }) => letters.Pending > 0)
    .map(({ drawer }) => drawer)
    .sort((a, b) => a - b)
}

async function expireBatch(
  work: OfficeWork,
  ways: Ways,
  { before, actor }: Expiry,
  drawer: number | null,
  after: Cursor,
  most: number,
): Promise<{ readonly expired: number; readonly next: Cursor | null }> {
  const { tx } = work
  const page = [before, after.lastFailureAt, after.id, most] as const
  const letters =
    drawer === null ? await OLD.all(tx, nextOfAll, ...page) : await OLD.all(tx, nextOfDrawer, ...page, drawer)
  const last = letters.at(-1)
  if (last === undefined) return { expired: 0, next: null }
  await leaveDeadQueues(work, ways, letters)
  await change(work, 'expire', letters, { actor, notes: null })
  return { expired: letters.length, next: letters.length < most ? null : last }
}

/** Takes letters out of where they lie, each through its own source. */
async function leaveDeadQueues(
  work: OfficeWork,
  { sources, labels }: Ways,
  old: readonly Old[],
): Promise<void> {
  const drawers = await labels.of(work.tx, [...new Set(old.map(({ drawer }) => drawer))])
  const sourceOf = new Map(drawers.map(({ number, source }) => [number, source]))
  for (const [name, mine] of Map.groupBy(old, ({ drawer }) => sourceOf.get(drawer))) {
    const source = name === undefined ? undefined : sources.get(name)
    const letters = mine.map((letter) => ({ ...letter, place: placeOf(letter) }))
    if (source !== undefined) await source.moved(work, letters, 'expire')
    else if (letters.some(({ place }) => place !== null))
      throw new Error(`nobody takes letters of '${name}' out of their dead queue`)
  }
}
