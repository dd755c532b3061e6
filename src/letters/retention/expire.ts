/**
 * Bulk expiry of pending letters whose last failure is long ago, oldest first. A run: each step is a transaction with history and
 * counts, and others have the store in between. Leased and locked letters are left alone.
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
import { POSITION, positionOf } from '../lists/detail.ts'
import type { DrawerLabels } from '../numbers/find-drawers.ts'
import { readHoldingDrawers } from '../numbers/summary.ts'
import type { LetterSource } from '../source.ts'
import type { OfficeWork } from '../work.ts'

interface Expiry {
  readonly before: Instant
  /** null: every engine. */
  readonly engine: string | null
  readonly actor: string
}

/** Per transaction, which writers wait for: 250 took 28 ms on SQLite and 61 ms on PostgreSQL, on two cores under fourfold load. */
export const EXPIRE_BATCH = 250

const OLD = rowShape({ ...POSITION, drawer: integer, lastFailureAt: at, engine: text })
type Old = RowOf<typeof OLD>

/** The oldest `$4` letters behind ($2, $3), in the order of the index: nothing is sorted. Skips locked rows, hence no deadlocks. */
const nextInRange = (name: string, index: string, range: string): Statement =>
  sql(
    name,
    `SELECT ${OLD.columns} FROM bartleby.letters INDEXED BY ${index} WHERE ${range} LIMIT $4 FOR UPDATE SKIP LOCKED`,
    { bigints: true },
  )

const nextOfAll = nextInRange(
  'letters.nextToExpire',
  'letters_newest',
  `(status, last_failure_at, id) > (${STATUS.Pending}, $2, $3) AND (status, last_failure_at) < (${STATUS.Pending}, $1)
   AND leased < 1 ORDER BY status, last_failure_at, id`,
)
/** As a range: under equalities PostgreSQL counts any order by time as good, and may walk past all other drawers. */
const nextOfDrawer = nextInRange(
  'letters.nextToExpireInDrawer',
  'letters_in_drawer',
  `(drawer, status, last_failure_at, id) > ($5, ${STATUS.Pending}, $2, $3)
   AND (drawer, status, last_failure_at) < ($5, ${STATUS.Pending}, $1) AND leased < 1
   ORDER BY drawer, status, last_failure_at, id`,
)

interface Cursor {
  readonly lastFailureAt: bigint
  readonly id: bigint
}

const START: Cursor = { lastFailureAt: -(2n ** 63n), id: 0n }

const EXPIRE = 'expire'

/** As stored: JSON has no numbers for instants. */
interface Subject {
  readonly before: string
  readonly engine: string | null
}

interface Place {
  /** null: before the first drawer, or over all letters. */
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
    place: placeFrom(null, START),
    actor,
  }
}

const placeFrom = (drawer: number | null, { lastFailureAt, id }: Cursor): Place => ({
  drawer,
  lastFailureAt: `${lastFailureAt}`,
  id: `${id}`,
})

/** Drawers per step: an engine may have thousands without old letters. */
const MOST_DRAWERS = 100
const MOST_REMEMBERED = 20

/** An expiry makes no drawers, so labels may be cached. */
interface Ways {
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly labels: DrawerLabels
}

/** Each letter leaves its dead queue through its own source. */
export function expiryKind(ways: Ways): RunKind<OfficeWork, Subject, Place> {
  // Forgotten drawers are read again.
  const known = new Map<Xid, readonly (number | null)[]>()
  return {
    kind: EXPIRE,
    batch: EXPIRE_BATCH,
    // A caller waits for it, and no writer waits longer than one batch: the usual rest made it ten times slower.
    rest: 0,
    // Sources that restrict who acts on their letters are engines of the same name.
    sourcesOf: ({ subject: { engine } }) => (engine === null ? null : [engine]),
    step: async (work, { id, actor, subject, place }, most) => {
      const { engine } = subject
      const expiry = { before: instant(BigInt(subject.before)), engine, actor }
      const drawers = known.get(id) ?? (await readDrawers(work.tx, engine))
      if (known.size >= MOST_REMEMBERED) known.clear()
      known.set(id, drawers)
      const left = drawers.filter((drawer) => (drawer ?? 0) >= (place.drawer ?? 0))
      let cursor: Cursor = { lastFailureAt: BigInt(place.lastFailureAt), id: BigInt(place.id) }
      let done = 0
      for (const drawer of left.slice(0, MOST_DRAWERS)) {
        if (drawer !== place.drawer) cursor = START
        const batch = await expireBatch(work, ways, expiry, drawer, cursor, most - done)
        done += batch.expired
        if (batch.next !== null) return { place: placeFrom(drawer, batch.next), done, next: 'more' }
      }
      const further = left[MOST_DRAWERS]
      if (further !== undefined) return { place: placeFrom(further, START), done, next: 'more' }
      known.delete(id)
      return { done, next: 'finished' }
    },
  }
}

/** Drawers with pending letters of an engine, by number; null stands for all letters. */
async function readDrawers(session: Session, engine: string | null): Promise<readonly (number | null)[]> {
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

async function leaveDeadQueues(
  work: OfficeWork,
  { sources, labels }: Ways,
  old: readonly Old[],
): Promise<void> {
  const drawers = await labels.of(work.tx, [...new Set(old.map(({ drawer }) => drawer))])
  const sourceOf = new Map(drawers.map(({ number, source }) => [number, source]))
  for (const [name, mine] of Map.groupBy(old, ({ drawer }) => sourceOf.get(drawer))) {
    const source = name === undefined ? undefined : sources.get(name)
    const letters = mine.map((letter) => ({ ...letter, position: positionOf(letter) }))
    if (source !== undefined) await source.moved(work, letters, 'expire')
    else if (letters.some(({ position }) => position !== null))
      throw new Error(`nobody takes letters of '${name}' out of their dead queue`)
  }
}
