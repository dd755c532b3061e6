/**
 * Checks the counts of webhooks on a live store, and repairs them.
 *
 * A transition changes a count and what it counts in one transaction, and folding changes neither: their difference is the same at every
 * moment. So a repair adds the difference that was found, as a change like any other, and nobody has to stand still. A lock keeps two
 * repairs from adding it twice.
 */
import type { Clock } from '../../../core/clock.ts'
import { type Difference, differences, Sums, type Walker } from '../../../letters/audit/walk.ts'
import { STATUS } from '../../../letters/letter.ts'
import { letterCounter, readLetterCounts } from '../../../letters/numbers/counts.ts'
import { readDrawers } from '../../../letters/numbers/find-drawers.ts'
import { readPlaceCounts } from '../../../letters/numbers/summary.ts'
import { inOffice } from '../../../letters/work.ts'
import type { Database, Session } from '../../../store/database.ts'
import { leasedLock } from '../../../store/lock.ts'
import { countPendingLetters, findMiscounts, type Miscount, readSubjectNames } from '../invariants.ts'
import { WEBHOOKS } from '../webhook.ts'
import { CountChanges } from './counts.ts'

interface Mismatch {
  readonly channelId: string
  readonly counted: number
  readonly actual: number
}

export interface WebhookCheckReport {
  /** Consumers whose dead jobs were counted. */
  readonly checked: number
  readonly mismatches: readonly (Mismatch & { readonly consumerId: string })[]
  /** `consumerId` is null for a channel's messages. */
  readonly tallies: readonly (Mismatch & { readonly consumerId: string | null; readonly tally: string })[]
  readonly repaired: boolean
}

interface WebhookCheckOptions {
  readonly clock: Clock
  readonly repair?: boolean
  readonly onProgress?: (rows: number) => void
}

class RepairUnderWay extends Error {
  override readonly name = 'RepairUnderWay'
}

const LOCK = 'webhooks.repair'
/** Counting a few million jobs takes a minute; the lock is renewed on the way. */
const LEASE_US = 120_000_000n
const RENEW_US = 30_000_000n

interface Findings {
  readonly checked: number
  readonly miscounts: readonly Miscount[]
  /** Drawers whose Pending letters differ from their count. */
  readonly drift: readonly Difference<number>[]
  /** What is missing at places beside that. */
  readonly ofPlaces: ReadonlyMap<number, number>
}

export async function checkWebhooks(
  db: Database,
  { clock, repair = false, onProgress = () => {} }: WebhookCheckOptions,
): Promise<WebhookCheckReport> {
  if (!repair) return reportOf(await look(db, onProgress), false)
  const lock = leasedLock(db, clock, LOCK, crypto.randomUUID())
  if (!(await lock.take(LEASE_US))) throw new RepairUnderWay('another repair is under way')
  try {
    let renewAt = clock.now() + RENEW_US
    const findings = await look(db, async (rows) => {
      onProgress(rows)
      if (clock.now() < renewAt) return
      renewAt = clock.now() + RENEW_US
      await lock.take(LEASE_US)
    })
    const repaired = await inOffice(db, clock, 'webhooks.repair', async (work) => {
      if (!(await lock.hold(work.tx))) throw new RepairUnderWay('another repair came in between')
      const tallies = new CountChanges()
      for (const { subject, tally, counted, actual } of findings.miscounts) {
        if (tally !== 'dead') tallies.add(subject, tally, actual - counted)
      }
      for (const { key: drawer, found, counted } of findings.drift)
        work.letters.add(drawer, STATUS.Pending, found - counted)
      for (const [place, letters] of findings.ofPlaces)
        await letterCounter.correct(work.tx, 'places', [place, STATUS.Pending, letters, 0])
      tallies.write(work.tx)
      return (
        findings.drift.length + findings.ofPlaces.size > 0 ||
        findings.miscounts.some(({ tally }) => tally !== 'dead')
      )
    })
    return reportOf(findings, repaired)
  } finally {
    await lock.drop()
  }
}

const look = (db: Database, onStep: (rows: number) => void | Promise<void>): Promise<Findings> =>
  db.snapshot('webhooks.verify', async (session) => {
    const walker: Walker = {
      session,
      async looked(rows) {
        await onStep(rows)
        await new Promise((resolve) => setImmediate(resolve))
      },
    }
    const miscounts: Miscount[] = []
    for await (const miscount of findMiscounts(walker)) miscounts.push(miscount)
    const names = [...(await readSubjectNames(session)).values()]
    return {
      checked: names.filter(({ consumerId }) => consumerId !== null).length,
      miscounts,
      ...(await findDrift(session, await countPendingLetters(walker))),
    }
  })

/** Letters against the counts of drawers, and these against the counts of places. */
async function findDrift(
  session: Session,
  found: ReadonlyMap<number, number>,
): Promise<Pick<Findings, 'drift' | 'ofPlaces'>> {
  const all = await readDrawers(session)
  const placeOf = new Map(
    all.flatMap((each) => (each.source === WEBHOOKS ? [[each.number, each.place]] : [])),
  )
  const books = new Map<number, number>()
  const ofPlaces = new Sums<number>()
  for (const { drawer, status, letters } of await readLetterCounts(session)) {
    const place = placeOf.get(drawer)
    if (place === undefined || status !== STATUS.Pending) continue
    books.set(drawer, letters)
    ofPlaces.add(place, letters)
  }
  for (const { place, letters } of await readPlaceCounts(session, { source: WEBHOOKS }))
    ofPlaces.add(place.number, -letters.Pending)
  for (const [place, letters] of ofPlaces) if (letters === 0) ofPlaces.delete(place)
  return { drift: [...differences(found, books)], ofPlaces }
}

function reportOf({ checked, miscounts }: Findings, repaired: boolean): WebhookCheckReport {
  // Without a consumer or channel there are no ids.
  const named = miscounts.map(({ subject, name, ...counts }) => ({
    channelId: name?.channelId ?? '',
    consumerId: name === undefined ? String(subject) : name.consumerId,
    ...counts,
  }))
  return {
    checked,
    mismatches: named
      .filter(({ tally }) => tally === 'dead')
      .map(({ tally: _, consumerId, ...counts }) => ({ ...counts, consumerId: consumerId ?? '' })),
    tallies: named.filter(({ tally }) => tally !== 'dead'),
    repaired,
  }
}
