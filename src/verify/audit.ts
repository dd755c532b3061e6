/** Opens an audit: reads what is small, and how much there is to look at. */
import type { Instant } from '../core/clock.ts'
import { idFromSerial } from '../core/ksuid.ts'
import { readSeriesLabels } from '../history/entry.ts'
import { plainSeries } from '../history/plain-capture.ts'
import { lettersIn, readAccounts, standingOf } from '../letters/books.ts'
import { readDrawers } from '../letters/drawers.ts'
import { readCounts } from '../queues/counts.ts'
import { readDeadCounts } from '../sources/webhooks/dead-counts.ts'
import { readTallies } from '../sources/webhooks/tallies.ts'
import { type Integer, type Session, type Snapshot, sql } from '../store/database.ts'
import type { Audit, FoundRow, Shelving, Sizes } from './invariant.ts'

/** All partitions with the names of their queues: a few for every queue. */
const readPartitions = sql(
  'verify.partitions',
  `SELECT part, number, id_prefix AS "idPrefix", name AS queue FROM bartleby.partitions JOIN bartleby.queues ON queues.id = queue_id`,
)

/** What the lanes of redrives were planned with. */
const readRedriven = sql(
  'verify.redriven',
  'SELECT coalesce(sum(planned), 0) AS redriven FROM bartleby.redrive_lanes',
)

/** The oldest rows of history and the newest, by their time: two looks into the index for every series. */
const readHistoryEnds = sql(
  'verify.historyEnds',
  `SELECT min(first) AS first, min(since) AS since, max(last) AS last FROM (
     SELECT (SELECT min(id) FROM (SELECT id FROM bartleby.history
         WHERE series = each.id ORDER BY created_at, history.id LIMIT 1000) AS oldest) AS first,
       (SELECT min(created_at) FROM bartleby.history WHERE series = each.id) AS since,
       (SELECT id FROM bartleby.history WHERE series = each.id ORDER BY created_at DESC, history.id DESC LIMIT 1) AS last
     FROM bartleby.history_series AS each) AS ends`,
  { bigints: true },
)

/** The letter with the lowest number. */
const readFirstLetter = sql(
  'verify.firstLetter',
  'SELECT captured_at FROM bartleby.letters ORDER BY id LIMIT 1',
  { bigints: true },
)

const DAY_US = 86_400_000_000n

/** Reads what every check needs. `looked` is told about rows as they are looked at. */
export async function openAudit(
  session: Snapshot,
  now: Instant,
  looked: (rows: number) => void,
): Promise<{ readonly audit: Audit; readonly sizes: Sizes }> {
  const drawers = new Map((await readDrawers(session)).map((drawer) => [drawer.number, drawer]))
  const partitions = await allPartitions(session)
  const history = await historyEnds(session, now)
  const [planned] = await session.rows<{ redriven: Integer }>(readRedriven)
  const sizes = {
    ...(await countedSizes(session, partitions)),
    redriven: Number(planned?.redriven),
    history: history.rows,
    ...(await webhookSizes(session)),
  }
  const series = await readSeriesLabels(session)
  const audit = {
    session,
    now,
    drawers,
    partitions,
    historySince: history.since,
    series,
    plainSeries: plainSeries(series),
    async looked(rows: number) {
      looked(rows)
      // SQLite answers at once: without this a server in the same process would not get a turn.
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
  return { audit, sizes }
}

/**
 * How many rows history has, nearly, and since when it has all of them. It is whole when its very first row is there
 * and no letter is much older: an empty history on SQLite starts again at 1. Otherwise retention has been at work, from
 * the oldest on, and of the rows of the oldest instant some may be gone already. It may have taken all, but nothing
 * that is younger than a day.
 */
async function historyEnds(
  session: Session,
  now: Instant,
): Promise<{ readonly rows: number; readonly since: bigint }> {
  const [ends] = await session.rows<{ first: Integer | null; since: Integer | null; last: Integer | null }>(
    readHistoryEnds,
  )
  if (ends?.first == null || ends.since === null) return { rows: 0, since: now - DAY_US }
  const [letter] = await session.rows<{ captured_at: Integer }>(readFirstLetter)
  const oldest = BigInt(ends.since)
  const isWhole =
    Number(ends.first) === 1 && (letter === undefined || oldest - BigInt(letter.captured_at) < DAY_US)
  return {
    rows: Math.max(0, Number(ends.last) - Number(ends.first) + 1),
    since: isWhole ? 0n : oldest + 1n,
  }
}

async function allPartitions(session: Session): Promise<Map<number, Shelving>> {
  const rows = await session.rows<Shelving & { readonly part: Integer }>(readPartitions)
  return new Map(rows.map(({ part, ...shelving }) => [Number(part), shelving]))
}

/** What the books say; whether they are right is for a check to tell. */
async function countedSizes(session: Session, partitions: ReadonlyMap<number, Shelving>) {
  const booked = standingOf(await readAccounts(session))
  const counts = await readCounts(session, [...partitions.keys()])
  const items = counts.reduce(
    (sum, { ready, leased, scheduled, held, dead }) => sum + ready + leased + scheduled + held - dead,
    0,
  )
  return { letters: lettersIn(booked), items, cases: booked.unconfirmed }
}

async function webhookSizes(session: Session) {
  let jobs = 0
  let messages = 0
  for (const counted of (await readTallies(session)).values()) {
    jobs += (counted.queued ?? 0) + (counted.inFlight ?? 0) + (counted.delivered ?? 0)
    messages += (counted.dispatched ?? 0) + (counted.scheduled ?? 0)
  }
  const dead = (await readDeadCounts(session)).reduce((sum, { deadCount }) => sum + deadCount, 0)
  return { jobs: jobs + dead, messages }
}

/** Whether the queue of a part is there. What a deleted one left behind cannot be leased any more. */
export const isLive = ({ partitions }: Audit, part: FoundRow[string]): boolean => partitions.has(Number(part))

/** Whether a serial is one that ids are made of. */
export const isSerial = (serial: FoundRow[string]): boolean =>
  Number(serial) >= 0 && Number(serial) <= Number.MAX_SAFE_INTEGER

/** Where an item lies, for people: its queue, its partition and its id. */
export function itemRow({ partitions }: Audit, part: FoundRow[string], serial: FoundRow[string]): FoundRow {
  const partition = partitions.get(Number(part))
  if (partition === undefined) return { part, serial }
  const { queue, number, idPrefix } = partition
  const name = isSerial(serial) ? { item: idFromSerial(idPrefix, Number(serial)) } : { serial }
  return { queue, partition: number, ...name }
}
