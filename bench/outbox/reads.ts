/** What fetching and looking cost beside many processed rows: the same calls with few of them and with many. */

import { later } from '../../src/core/clock.ts'
import { SystemClock } from '../../src/core/system-clock.ts'
import { readBacklog } from '../../src/sources/outbox/served/health.ts'
import { listMessages } from '../../src/sources/outbox/served/list.ts'
import { readTable } from '../../src/sources/outbox/sql/table.ts'
import { OUTBOX_STATUSES } from '../../src/sources/outbox/table/message.ts'
import { openDatabase } from '../../src/store/open.ts'
import { median, timed } from '../figures.ts'
import { openLoader } from '../letters/loader.ts'
import type { Sizes } from './flags.ts'
import { loadMessages, makeTables, readBooks, TABLE } from './table.ts'
import type { ReadFigures } from './task.ts'

/** What waits, in every measurement; some of it has failed or is dead. */
const PENDING = 1_000
const BATCH = 100
const MINUTE_US = 60_000_000n

export async function measureReads(store: string, rows: number, sizes: Sizes): Promise<ReadFigures> {
  await makeTables(store)
  await loadMessages(store, rows, 'processed')
  await loadMessages(store, PENDING, 'pending')
  await failSome(store)
  const clock = new SystemClock()
  const db = openDatabase(store, { poolSize: 1 })
  const figures: Record<string, number> = {}
  const take = async (name: string, calls: number, act: () => Promise<unknown>) => {
    figures[name] = median(await timed(calls, act))
  }
  try {
    const table = await readTable(db, {})
    await take('metrics (readBacklog)', sizes.samples, () =>
      db.session('bench', (session) => readBacklog(session, table.layout, clock.now())),
    )
    const page = { eventType: null, tenantId: null, page: 1, pageSize: 50 }
    for (const status of [...OUTBOX_STATUSES, null]) {
      await take(`first page, ${status ?? 'all'}`, sizes.samples, () =>
        db.session('bench', (session) => listMessages(session, table.layout, { ...page, status })),
      )
    }
    await take('first page, processed of a tenant', Math.ceil(sizes.samples / 10), () =>
      db.session('bench', (session) =>
        listMessages(session, table.layout, { ...page, status: 'processed', tenantId: 'tenant-3' }),
      ),
    )
    // Calls that are not measured claim too, no more than those that are.
    await loadMessages(store, 2 * sizes.samples * BATCH, 'pending')
    const claimed: string[][] = []
    await take(`claim of ${BATCH}`, sizes.samples, async () => {
      const now = clock.now()
      const { messages } = await table.claim(db, {
        now,
        claimedBy: 'bench',
        claimedUntil: later(now, MINUTE_US),
        limit: BATCH,
        freshFrom: null,
        onDead: 'hold',
        suspectFrom: 2,
        suspects: false,
      })
      if (messages.length === 0) throw new Error('nothing was left to be claimed')
      claimed.push(messages.map(({ id }) => id))
    })
    await take(`settlement of ${BATCH}`, sizes.samples, async () => {
      const ids = claimed.pop() ?? []
      await db.transaction('bench', (tx) =>
        table.settle(
          tx,
          ids.map((id) => ({ kind: 'processed', id })),
          'bench',
          clock.now(),
        ),
      )
    })
    const books = await readBooks(store)
    if (books.processed + books.dead + books.pending !== rows + PENDING + 2 * sizes.samples * BATCH)
      throw new Error(`the books do not balance: ${JSON.stringify(books)}`)
  } finally {
    await db.close()
  }
  return figures
}

/** A tenth of what waits has failed before, a twentieth is dead. */
async function failSome(store: string): Promise<void> {
  const loader = await openLoader(store)
  const now = loader.dialect === 'postgres' ? 'now()' : `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`
  const later = loader.dialect === 'postgres' ? `now() + interval '1 day'` : `${now} + 86400000000`
  await loader.run(
    `UPDATE ${TABLE} SET retry_count = 1, error = 'it answered 503', next_attempt_at = ${later} WHERE processed_at IS NULL AND id % 10 = 0`,
  )
  await loader.run(
    `UPDATE ${TABLE} SET dead_at = ${now}, error = 'it answered 400' WHERE processed_at IS NULL AND id % 20 = 1`,
  )
  await loader.calm()
  await loader.close()
}
