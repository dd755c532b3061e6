/** Everything that is ever done with the tables of an outbox, done once. Whoever watches sees every statement. */
import { type Instant, instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { letterId } from '../../src/letters/letter.ts'
import type { Adapter } from '../../src/sources/outbox/adapters/adapter.ts'
import { createInbox } from '../../src/sources/outbox/inbox.ts'
import { backlogStatementOf } from '../../src/sources/outbox/served/health.ts'
import { statementsOf } from '../../src/sources/outbox/served/list.ts'
import { letterRowsOf } from '../../src/sources/outbox/sql/letters.ts'
import { messageTable } from '../../src/sources/outbox/sql/table.ts'
import type { Layout } from '../../src/sources/outbox/table/layout.ts'
import { OUTBOX_STATUSES, type Settlement } from '../../src/sources/outbox/table/message.ts'
import type { TableOptions } from '../../src/sources/outbox/table/table-names.ts'
import { createOutbox } from '../../src/sources/outbox/writing/writer.ts'
import type { Database, Statement } from '../../src/store/database.ts'
import { createdAt, HELD_LINE, idOf, keyOf, NOW, OLDEST_KEPT, TENANT } from './outbox-load.ts'

/** Rows of a claim. */
export const BATCH = 100

export interface Toured {
  readonly layout: Layout
  readonly options: TableOptions
  /** What a dispatcher and the office have. */
  readonly db: Database
  /** What an application has; statements are told apart by what was called. */
  readonly application: (called: string) => Adapter<null>
}

const ME = 'd1'
const HOUR_US = 3_600_000_000n
const NEVER_AGAIN = new AbortController().signal

/** Statements that look at as much as there is, or at the first 100,000 of it: only their plans are of interest. */
export const questionsOf = (layout: Layout): readonly Statement[] => [
  backlogStatementOf(layout),
  ...[null, ...OUTBOX_STATUSES].flatMap((status) =>
    [false, true].flatMap((filtered) => Object.values(statementsOf(layout, status, filtered))),
  ),
]

/** The first page of every list that is not filtered. */
export async function readPages({ layout, db }: Toured): Promise<void> {
  for (const status of [null, ...OUTBOX_STATUSES]) {
    const { page } = statementsOf(layout, status, false)
    await db.session('page', (session) => session.rows({ ...page, name: `page.${status}` }, 25, 0))
  }
}

/** Does everything. What the table holds does not matter; nothing is called that finds nothing. */
export async function tour(toured: Toured): Promise<void> {
  await deliver(toured)
  await correspond(toured)
  await purge(toured)
  await write(toured)
  await receive(toured)
}

async function deliver({ layout, db }: Toured): Promise<void> {
  const table = messageTable(layout)
  const claim = (
    onDead: 'hold' | 'skip',
    freshFrom: Instant | null,
    { suspects = false, limit = BATCH } = {},
  ) =>
    table.claim(db, {
      now: NOW,
      claimedBy: ME,
      claimedUntil: instant(NOW + 60_000_000n),
      limit,
      freshFrom,
      onDead,
      suspectFrom: 2,
      suspects,
    })
  const { messages } = await claim('hold', null)
  await claim('skip', createdAt(OLDEST_KEPT))
  if (await table.suspectsWait(db, NOW, 2)) await claim('hold', null, { suspects: true, limit: 1 })
  const claimed = messages.map(({ id }) => id)
  const ids = claimed.length > 0 ? claimed : [idOf(layout, 1), idOf(layout, 2)]
  // One of them is not ours, so that it is asked which still are.
  await table.renew(db, [...ids, idOf(layout, 3)], ME, instant(NOW + 90_000_000n))
  await db.transaction('settle', (tx) => table.settle(tx, ids.map(settlementOf), ME, NOW))
  const lines = [HELD_LINE, 'line-1', 'line-2'].map((orderingKey) => ({ tenantId: TENANT, orderingKey }))
  await table.lines.release(db, lines, 'hold')
  await table.lines.release(db, lines, 'skip')
  await table.lines.sweep(db, null, 3, 'hold')
  await table.lines.sweep(db, { tenantId: TENANT, orderingKey: HELD_LINE }, 3, 'hold')
  await table.setWaiting(db, true)
  await table.setWaiting(db, false)
}

function settlementOf(id: string, nth: number): Settlement {
  if (nth % 2 === 0) return { kind: 'processed', id }
  if (nth % 8 === 1) return { kind: 'failed', id, error: 'no', nextAttemptAt: instant(NOW + HOUR_US) }
  if (nth % 8 === 3) return { kind: 'dead', id, error: 'no', failures: 1 }
  return { kind: 'released', id, parked: nth % 8 === 5 }
}

async function correspond({ layout, db }: Toured): Promise<void> {
  const rows = letterRowsOf(layout)
  await db.transaction('letters', async (tx) => {
    const due = (await rows.due(tx, null, 200)).map(({ id }) => id)
    const ids = due.length > 0 ? due : [idOf(layout, 1), idOf(layout, 2)]
    await rows.due(tx, ids[ids.length >> 1] ?? null, 200)
    await rows.read(tx, ids)
    const found = await rows.lock(tx, ids)
    const letters = found.map((row, at) => ({ row, letterId: letterId(at + 1) }))
    const [first] = letters
    const known = first ?? { row: emptyRow(layout), letterId: letterId(1) }
    const list = [known, ...letters.slice(1)]
    const told = list.map(({ row, letterId }) => ({ letterId, id: row.id, key: row.key }))
    await rows.unmark(tx, list)
    await rows.giveUp(tx, told, NOW)
    await rows.reinstate(tx, told)
    await rows.gone(tx, told)
    await rows.lockStates(tx, ids)
    await rows.startDead(
      tx,
      told.map((row) => ({ ...row, digest: 'e3b0c44298fc1c149afbf4c8996fb924' })),
    )
    const { id } = known.row
    await rows.startOver(tx, [{ id, letterId: known.letterId, payload: Buffer.from('{"b":2}') }])
    await rows.takeBack(tx, told, NOW)
  })
}

const emptyRow = (layout: Layout) => ({
  id: idOf(layout, 1),
  tenantId: TENANT,
  eventType: 'type',
  payload: Buffer.from('{}'),
  key: keyOf(1),
  createdAt: NOW,
  retryCount: 1,
  orderingKey: null,
  headers: null,
  correlationId: null,
  error: null,
  earlierFailures: null,
  deadAt: NOW,
  isProcessed: false,
  claimedUntil: null,
  letterDue: true,
})

/** Keys are recorded in the first round, rows go in the second, keys are forgotten in the third. */
async function purge({ layout, db }: Toured): Promise<void> {
  const { purge } = messageTable(layout)
  const rounds = [0n, 2n * 60_000_000n, 24n * HOUR_US].map((behind) => instant(NOW + behind))
  for (const now of rounds) {
    const cutoffs = { now, processedBefore: createdAt(OLDEST_KEPT), recordedBefore: instant(now - HOUR_US) }
    await purge(db, cutoffs, NEVER_AGAIN)
  }
}

async function write({ options, application }: Toured): Promise<void> {
  const clock = new TestClock()
  clock.freeze(NOW)
  const there = OLDEST_KEPT
  for (const timed of [{}, { clock }]) {
    const at = 'clock' in timed ? ' at a time' : ''
    const open = (called: string) =>
      createOutbox({ adapter: application(`${called}${at}`), ...options, ...timed })
    const message = { tenantId: TENANT, eventType: 'type', payload: { a: 1 } }
    const more = { ...message, orderingKey: 'line-1', headers: { a: 'b' }, correlationId: 'c' }
    const keyed = (n: number) => ({ ...message, key: keyOf(n) })
    const another = 8_000_000 + 1_000 * at.length
    await open('add').add(null, message)
    await open('add with all').add(null, more)
    await open('add with a key').add(null, keyed(another))
    await open('add a key that is there').add(null, keyed(there))
    await open('add many').addMany(null, Array(50).fill(more))
    const mixed = Array.from({ length: 50 }, (_, i) => keyed(i % 2 === 0 ? there + i : another + i))
    await open('add many with keys').addMany(null, mixed)
  }
}

async function receive({ application }: Toured): Promise<void> {
  const inbox = (called: string) => createInbox({ adapter: application(`inbox: ${called}`) })
  const key = { consumer: 'mails', key: keyOf(9_000_000) }
  await inbox('once').once(null, key, () => 1)
  await inbox('once again').once(null, key, () => 1)
  const failing = inbox('once in vain').once(null, { ...key, consumer: 'others' }, () => {
    throw new RangeError('no')
  })
  await failing.catch(() => {})
  await inbox('forget').forget(null)
  await inbox('forget the rest').forget(null)
}
