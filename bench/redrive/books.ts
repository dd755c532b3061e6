/** The end of every measurement: what the redrives say they have sent lies in the queue, is resolved, and is in history. */
import { openDatabase } from '../../src/store/open.ts'
import { verifyStore } from '../../src/verify/verify.ts'
import { type Loader, openLoader } from '../letters/loader.ts'
import { reconcile } from '../letters/reconcile.ts'
import { words } from '../letters/sql.ts'
import { QUEUE } from './load.ts'
import type { Books } from './task.ts'

/** Throws unless the books balance. Nobody may write to the store meanwhile. */
export async function balance(store: string, sent: number): Promise<Books> {
  const loader = await openLoader(store)
  try {
    const books = { sent, ...(await counted(loader)) }
    const { items, resolved, retries } = books
    if (items !== sent || resolved !== sent || retries !== sent)
      throw new Error(`the books do not balance: ${JSON.stringify(books)}`)
    const unordered = await outOfOrder(loader)
    if (unordered > 0) throw new Error(`${unordered} letters were sent before an earlier one of their key`)
    await reconcile(store)
    const startedAt = performance.now()
    await verify(store)
    return { ...books, verifySeconds: (performance.now() - startedAt) / 1000 }
  } finally {
    await loader.close()
  }
}

const itemsOf = (schema: string): string =>
  `SELECT items.id, items.case_id, items.created_at FROM ${schema}items
   JOIN ${schema}partitions ON partitions.part = items.part
   JOIN ${schema}queues ON queues.id = partitions.queue_id WHERE queues.name = '${QUEUE}'`

/** How many items lie in the queue. */
export async function itemsIn(loader: Loader): Promise<number> {
  const [row] = await loader.rows(
    `SELECT count(*) AS items FROM (${itemsOf(words[loader.dialect].schema)}) AS found`,
  )
  return Number(row?.items)
}

/** How many items came into the queue from one instant on, up to another. */
export async function itemsBetween(loader: Loader, fromUs: bigint, toUs: bigint): Promise<number> {
  const [row] = await loader.rows(
    `SELECT count(*) AS items FROM (${itemsOf(words[loader.dialect].schema)}) AS found
     WHERE created_at >= ${fromUs} AND created_at < ${toUs}`,
  )
  return Number(row?.items)
}

async function counted(loader: Loader): Promise<Pick<Books, 'items' | 'resolved' | 'retries'>> {
  const { schema } = words[loader.dialect]
  const [row] = await loader.rows(
    `SELECT (SELECT count(*) FROM ${schema}letters WHERE status = 1 AND resolution = 'retry' AND redrive IS NOT NULL) AS resolved,
       (SELECT count(*) FROM ${schema}history JOIN ${schema}history_series ON history_series.id = history.series
        WHERE operation = 'retry') AS retries`,
  )
  return { items: await itemsIn(loader), resolved: Number(row?.resolved), retries: Number(row?.retries) }
}

/** Items that lie in the queue behind a later letter of their key. */
async function outOfOrder(loader: Loader): Promise<number> {
  const { schema } = words[loader.dialect]
  const [row] = await loader.rows(
    `SELECT count(*) AS items FROM (
       SELECT captured_at, lag(captured_at) OVER (PARTITION BY instance_id ORDER BY sent.id) AS before
       FROM (${itemsOf(schema)}) AS sent JOIN ${schema}letters ON letters.id = sent.case_id
       WHERE instance_id IS NOT NULL) AS steps
     WHERE captured_at < before`,
  )
  return Number(row?.items)
}

/** Throws unless every promise of the store is kept. */
export async function verify(store: string): Promise<void> {
  const db = openDatabase(store, { poolSize: 2 })
  try {
    const { clean, invariants } = await verifyStore(db)
    const broken = invariants.flatMap(({ violations }) => violations).slice(0, 3)
    if (!clean) throw new Error(`verify found broken promises: ${JSON.stringify(broken).slice(0, 500)}`)
  } finally {
    await db.close()
  }
}
