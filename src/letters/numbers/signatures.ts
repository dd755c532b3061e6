/** Groups of letters by signature. The store adds up the groups of a page; samples and trends are looked up for these alone. */

import type { Within } from '../../api/shapes.ts'
import { type Instant, instant } from '../../core/clock.ts'
import { cut } from '../../core/mask.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import { at, integer, rowShape, text } from '../../store/row.ts'
import { type LetterStatus, STATUS, STATUSES } from '../letter.ts'
import { readUnlabelled } from '../lists/detail.ts'
import { inOrder, type PositionRow, toPosition } from '../lists/positions.ts'
import { readTrends } from './activity.ts'
import { letterCounter } from './counts.ts'
import { type FiledSignature, readSignature } from './drawers.ts'
import { type DrawerLabels, eachWay, type PlaceFilter, readHolding } from './find-drawers.ts'
import type { SignatureDetail as ShownDetail, SignatureGroup as ShownGroup } from './shapes.ts'
import {
  type DrawerCounts,
  holding,
  lettersIn,
  OF_LETTERS,
  queueOf,
  readDrawerCounts,
  readPlaceCounts,
  WITH_SIGNATURE,
} from './summary.ts'

/** Version 0 holds errors beyond the limit of groups. */
export type SignatureGroup = Within<ShownGroup>

export type SignatureDetail = Within<ShownDetail>

type SampleLetter = NonNullable<SignatureGroup['sample']>

export type GroupCursor = Pick<SignatureGroup, 'open' | 'total' | 'signature'>

interface GroupPage {
  readonly items: readonly SignatureGroup[]
  /** null on the last page. */
  readonly next: GroupCursor | null
}

type Group = Omit<SignatureGroup, 'sample' | 'trend'> & {
  readonly held: readonly DrawerCounts[]
  readonly drawers: readonly number[]
}

const GROUP = rowShape({
  id: integer,
  fingerprint: text,
  errorClass: text,
  title: text,
  firstSeenAt: at,
  open: integer,
  total: integer,
})

/** Groups behind ($2, $3, $4). Only the page leaves the store. */
const readPage = eachWay((way, withFiled, among) =>
  letterCounter.read(
    `letterCounts.bySignature.${way}`,
    'drawers',
    (counted) => `${withFiled}
      SELECT ${GROUP.columns} FROM (
        SELECT signature, sum(CASE WHEN status = ${STATUS.Pending} THEN letters ELSE 0 END) AS open, sum(letters) AS total
        FROM ${counted} JOIN filed ON filed.id = counted.drawer GROUP BY signature
      ) AS groups ${WITH_SIGNATURE}
      WHERE total > 0 AND (-open, -total, fingerprint) > ($2, $3, $4)
      ORDER BY open DESC, total DESC, fingerprint LIMIT $5`,
    { where: OF_LETTERS, ...among, bigints: true },
  ),
)

const START: GroupCursor = { open: Number.MAX_SAFE_INTEGER, total: 0, signature: '' }

/** Most open letters first. A group whose counts change during a walk may be met twice, or not at all. */
export async function listSignatures(
  session: Session,
  filter: PlaceFilter,
  page: { readonly after: GroupCursor | null; readonly limit: number },
  labels: DrawerLabels,
  now: Instant,
): Promise<GroupPage> {
  const { open, total, signature } = page.after ?? START
  const places = readPlaceCounts(session, filter).then(holding)
  const behind = [-open, -total, signature, page.limit + 1]
  const rows = await readHolding<object>(session, readPage, filter, places, ...behind)
  const shown = rows.slice(0, page.limit).map(GROUP.read)
  const numbers = shown.map(({ id }) => id)
  const drawers = await readDrawerCounts(session, await places, numbers, labels)
  const bySignature = Map.groupBy(drawers, ({ fingerprint }) => fingerprint)
  const groups = shown.map((group) => ({
    ...toGroup(group, bySignature.get(group.fingerprint) ?? []),
    ...{ open: group.open, total: group.total },
  }))
  const last = groups.at(-1)
  return {
    items: await complete(session, groups, now),
    next:
      last === undefined || rows.length <= page.limit
        ? null
        : { open: last.open, total: last.total, signature: last.signature },
  }
}

/** null: no letter ever had it. */
export async function readSignatureGroup(
  session: Session,
  fingerprint: string,
  labels: DrawerLabels,
  now: Instant,
): Promise<SignatureDetail | null> {
  const signature = await readSignature(session, fingerprint)
  if (signature === null) return null
  const places = (await readPlaceCounts(session)).map(({ place }) => place.number)
  const drawers = await readDrawerCounts(session, places, [signature.number], labels)
  const [group] = await complete(session, [toGroup(signature, drawers)], now)
  if (group === undefined) return null
  const sum = (of: (counts: DrawerCounts) => number) => drawers.reduce((sum, each) => sum + of(each), 0)
  return {
    ...group,
    outcomes: {
      retried: sum(({ ever }) => ever.retried),
      confirmed: sum(({ ever }) => ever.confirmed),
      returned: sum(({ ever }) => ever.returned),
      unconfirmed: sum(({ unconfirmed }) => unconfirmed),
    },
  }
}

function toGroup(
  { fingerprint, errorClass, title, firstSeenAt }: Omit<FiledSignature, 'number'>,
  drawers: readonly DrawerCounts[],
): Group {
  const held = drawers.filter(({ letters }) => lettersIn(letters) > 0)
  const lastSeenAt = drawers.reduce(
    (latest, each) => (each.lastSeenAt > latest ? each.lastSeenAt : latest),
    NEVER,
  )
  return {
    signature: fingerprint,
    version: Number.parseInt(fingerprint, 10),
    errorClass,
    title,
    open: held.reduce((sum, { letters }) => sum + letters.Pending, 0),
    total: held.reduce((sum, { letters }) => sum + lettersIn(letters), 0),
    // A failure reported late happened before its signature was filed.
    firstSeenAt: lastSeenAt !== NEVER && lastSeenAt < firstSeenAt ? lastSeenAt : firstSeenAt,
    lastSeenAt: lastSeenAt === NEVER ? firstSeenAt : lastSeenAt,
    sources: distinct(held.map(({ place }) => place.source)),
    engines: distinct(held.map(({ place }) => place.engine)),
    originalQueues: distinct(held.flatMap(({ place }) => queueOf(place) ?? [])),
    held,
    drawers: drawers.map(({ drawer }) => drawer),
  }
}

const NEVER = instant(0n)

const distinct = (values: readonly string[]): string[] => [...new Set(values)].sort()

/** Drawers looked into, latest failures first: a group may have one per queue. */
const MAX_LOOKS = 10
const MAX_SAMPLE_MESSAGE = 1_000

interface SampleRange {
  readonly signature: string
  readonly drawer: number
  readonly status: LetterStatus
}

/** Ranges of the index that hold the sample: open letters, if any. */
function rangesOf({ signature, open, held }: Group): SampleRange[] {
  const wanted = open > 0 ? (['Pending'] as const) : STATUSES
  return held
    .filter(({ letters }) => wanted.some((status) => letters[status] > 0))
    .sort((a, b) => Number(b.lastSeenAt - a.lastSeenAt) || a.drawer - b.drawer)
    .slice(0, MAX_LOOKS)
    .flatMap(({ drawer, letters }) =>
      wanted.filter((status) => letters[status] > 0).map((status) => ({ signature, drawer, status })),
    )
}

/**
 * One step into letters_in_drawer each. A range, because under an equality PostgreSQL counts any order by time as good and may walk
 * letters_newest past all other drawers.
 */
const newestOfRanges = sql(
  'letters.samples',
  `SELECT newest.drawer, newest.id, newest.at FROM unnest($1::int[], $2::int[]) AS given (drawer, status)
   CROSS JOIN LATERAL (
     SELECT drawer, id, last_failure_at AS at FROM bartleby.letters INDEXED BY letters_in_drawer
     WHERE (drawer, status) >= (given.drawer, given.status) AND (drawer, status) <= (given.drawer, given.status)
     ORDER BY drawer DESC, status DESC, last_failure_at DESC, id DESC LIMIT 1) AS newest`,
  { bigints: true },
)

const TREND_HOURS = 24

async function complete(session: Session, groups: readonly Group[], now: Instant): Promise<SignatureGroup[]> {
  const [samples, trends] = await Promise.all([
    readSamples(session, groups.flatMap(rangesOf)),
    readTrends(
      session,
      groups.flatMap((group) => group.drawers),
      now,
      TREND_HOURS,
    ),
  ])
  return groups.map(({ held: _, drawers, ...group }) => {
    const sample = samples.get(group.signature) ?? null
    const trend = drawers.reduce((sum, drawer) => addedUp(sum, trends.get(drawer)), NO_TREND)
    return { ...group, sample, trend }
  })
}

const NO_TREND: readonly number[] = Array.from({ length: TREND_HOURS }, () => 0)

const addedUp = (numbers: readonly number[], more: readonly number[] | undefined): readonly number[] =>
  more === undefined ? numbers : numbers.map((number, i) => number + (more[i] ?? 0))

async function readSamples(
  session: Session,
  ranges: readonly SampleRange[],
): Promise<ReadonlyMap<string, SampleLetter>> {
  const given = ranges.map(({ drawer, status }) => ({ drawer, status: STATUS[status] }))
  const heads = await rowsGiven<PositionRow & { readonly drawer: Integer }>(session, newestOfRanges, given)
  const signatures = new Map(ranges.map(({ drawer, signature }) => [drawer, signature]))
  const oldestFirst = heads
    .map((row) => ({ ...toPosition(row), signature: signatures.get(Number(row.drawer)) ?? '' }))
    .sort((a, b) => inOrder(b, a))
  const newest = new Map(oldestFirst.map(({ signature, id }) => [signature, id]))
  const letters = await readUnlabelled(session, [...newest.values()])
  const byId = new Map(letters.map((letter) => [letter.id, letter]))
  const samples = new Map<string, SampleLetter>()
  for (const [signature, id] of newest) {
    const letter = byId.get(id)
    if (letter === undefined) continue
    const { engine, rowKey } = letter
    samples.set(signature, { engine, rowKey, errorMessage: cut(letter.errorMessage, MAX_SAMPLE_MESSAGE) })
  }
  return samples
}
