/**
 * Queues, partitions and engine queues as rows, and the serials of items: one ascending sequence per store, so that ids of a partition
 * ascend across servers for calls that do not overlap, whatever their clocks say.
 */
import type { Instant } from '../core/clock.ts'
import { storedText, textBytes } from '../core/content.ts'
import { idFromSerial, newIdPrefix } from '../core/ksuid.ts'
import { type Integer, type Session, sql, type Transaction, type Value } from '../store/database.ts'
import { takeNumbers } from '../store/numbers.ts'
import { at, integer, type RowOf, rowShape, text } from '../store/row.ts'
import type { ItemId, OnDeath, QueueInfo } from './queue.ts'

export interface Partition {
  /** Store-wide number; the key of its items. */
  readonly part: number
  /** Number within the queue, from 0. */
  readonly number: number
  readonly idPrefix: string
  /** Letters may be here beside items: the queue is or was a dead queue. */
  readonly holdsLetters: boolean
}

/** The public id of an item, branded here and nowhere else. */
export const itemIdIn = ({ idPrefix }: Pick<Partition, 'idPrefix'>, serial: number): ItemId =>
  idFromSerial(idPrefix, serial) as ItemId

export interface QueueRecord extends QueueInfo {
  readonly queueId: number
  /** Grows with every update. */
  readonly version: number
  readonly holdsLetters: boolean
  readonly partitions: readonly Partition[]
}

/** Queues from the name `pivot` on. */
export interface QueuePage {
  readonly pivot: string
  readonly limit: number
  readonly namespace: string
}

interface PartitionRow {
  readonly part: Integer
  readonly number: Integer
  readonly id_prefix: string
}

const QUEUE = rowShape({
  id: integer,
  name: text,
  version: integer,
  namespace: text,
  createdAt: at,
  updatedAt: at,
  leaseTimeoutNs: (ns: Integer) => BigInt(ns),
  expireTimeoutNs: (ns: Integer) => BigInt(ns),
  maxAttempts: integer,
  requestedPartitions: integer,
  deadQueue: (name: string | null) => name ?? '',
  reference: storedText,
  /** NULL in a queue older than the choice. */
  onDeath: (storableText: OnDeath | null) => storableText ?? 'letter',
  holdsLetters: (holds: boolean | Integer) => holds === true || Number(holds) === 1,
})

const readByName = sql('queues.read', `SELECT ${QUEUE.columns} FROM bartleby.queues WHERE name = $1`, {
  bigints: true,
})

/** In byte order on the unique index; stops at the limit. */
const readPage = sql(
  'queues.page',
  `SELECT ${QUEUE.columns} FROM bartleby.queues WHERE name >= $1 AND namespace = $2 ORDER BY name LIMIT $3`,
  { bigints: true },
)

const readPartitions = sql(
  'queues.partitions',
  'SELECT part, number, id_prefix FROM bartleby.partitions WHERE queue_id = $1 ORDER BY queue_id, number',
)

/** Of many queues, on the same index. */
const readPartitionsOf = sql(
  'queues.partitionsOf',
  `SELECT queue_id, part, number, id_prefix FROM bartleby.partitions
   WHERE queue_id = ANY($1::int[]) ORDER BY queue_id, number`,
)

const readVersion = sql('queues.version', 'SELECT version FROM bartleby.queues WHERE id = $1')

/** Fails, and the transaction with it, when the queue is gone or has other settings. */
const insistOnCurrent = sql('queues.insistOnCurrent', {
  postgres: 'SELECT 1 / count(*) AS current FROM bartleby.queues WHERE id = $1 AND version = $2',
})

/** On the partial index of dead queues. */
const readUser = sql('queues.user', 'SELECT name FROM bartleby.queues WHERE dead_queue = $1 LIMIT 1')

const insertQueue = sql(
  'queues.insert',
  `INSERT INTO bartleby.queues (${QUEUE.columns}) VALUES ($1, $2, 1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
)

const insertPartition = sql(
  'queues.insertPartition',
  'INSERT INTO bartleby.partitions (part, queue_id, number, id_prefix) VALUES ($1, $2, $3, $4)',
)

const insertTotals = sql(
  'queues.insertTotals',
  'INSERT INTO bartleby.partition_totals VALUES ($1, 0, 0, 0, 0, 0, 0, 0, 0, 0)',
)

const updateQueue = sql(
  'queues.update',
  `UPDATE bartleby.queues SET version = version + 1, updated_at = $2, lease_timeout_ns = $3, expire_timeout_ns = $4,
     max_attempts = $5, requested_partitions = $6, dead_queue = $7, reference = $8, on_death = $9
   WHERE id = $1`,
)

const markHoldsLetters = sql(
  'queues.holdsLetters',
  'UPDATE bartleby.queues SET holds_letters = $2, version = version + 1 WHERE id = $1',
)

const deleteQueue = sql('queues.delete', 'DELETE FROM bartleby.queues WHERE id = $1')
const deletePartitions = sql('queues.deletePartitions', 'DELETE FROM bartleby.partitions WHERE queue_id = $1')
const dropPart = sql(
  'queues.dropPart',
  'INSERT INTO bartleby.dropped_parts (part, dropped_at) VALUES ($1, $2)',
)

/** Create, update and delete take turns, so that checks against other queues still hold at commit. */
const takeTurn = sql('queues.turn', 'SELECT pg_advisory_xact_lock(1853002)')

export const takeSettingsTurn = async (tx: Transaction): Promise<void> => {
  await tx.rows(takeTurn)
}

export async function readQueue(session: Session, name: string): Promise<QueueRecord | null> {
  // No queue has a NUL in its name, and PostgreSQL refuses it.
  if (name.includes('\0')) return null
  const [row] = await session.rows<object>(readByName, name)
  if (row === undefined) return null
  const read = QUEUE.read(row)
  const queue = recordOf(read, await session.rows<PartitionRow>(readPartitions, read.id))
  // Deleted between the two statements.
  return queue.partitions.length === 0 ? null : queue
}

export async function readQueues(session: Session, page: QueuePage): Promise<QueueInfo[]> {
  return (await pageOf(session, page)).map(({ id, version, holdsLetters, name, ...info }) => ({
    queueName: name,
    ...info,
  }))
}

/** With partitions; two statements for any number of queues. */
export async function readQueueRecords(session: Session, page: QueuePage): Promise<QueueRecord[]> {
  const rows = await pageOf(session, page)
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const partitions = await session.rows<PartitionRow & { readonly queue_id: Integer }>(readPartitionsOf, ids)
  const byQueue = Map.groupBy(partitions, ({ queue_id }) => Number(queue_id))
  return rows.map((row) => recordOf(row, byQueue.get(row.id) ?? []))
}

async function pageOf(session: Session, page: QueuePage): Promise<RowOf<typeof QUEUE>[]> {
  const pivot = page.pivot.split('\0', 1)[0] ?? ''
  const namespace = page.namespace.split('\0', 1)[0] ?? ''
  return (await session.rows<object>(readPage, pivot, namespace, page.limit)).map(QUEUE.read)
}

export async function readQueueVersion(session: Session, queueId: number): Promise<number | null> {
  const [row] = await session.rows<{ version: Integer }>(readVersion, queueId)
  return row === undefined ? null : Number(row.version)
}

/** Fails the transaction when the queue changed (PostgreSQL only); `isDividedByNone` recognises the failure. */
export async function insistOnVersion(tx: Transaction, { queueId, version }: QueueRecord): Promise<void> {
  await tx.rows(insistOnCurrent, queueId, version)
}

/** Some queue with this dead queue. */
export async function readQueueUsing(session: Session, name: string): Promise<string | null> {
  const [row] = await session.rows<{ name: string }>(readUser, name)
  return row?.name ?? null
}

export interface EngineQueue {
  readonly queue: string
  readonly engine: string
}

const readEngine = sql('engineQueues.read', 'SELECT engine FROM bartleby.engine_queues WHERE queue = $1')

/** As many rows as engines were ever defined. */
const readEngines = sql(
  'engineQueues.readAll',
  'SELECT queue, engine FROM bartleby.engine_queues ORDER BY queue',
)

/** null for a plain queue. */
export async function readEngineOf(session: Session, queue: string): Promise<string | null> {
  const [row] = await session.rows<{ readonly engine: string }>(readEngine, queue)
  return row?.engine ?? null
}

export const readEngineQueues = (session: Session): Promise<readonly EngineQueue[]> =>
  session.rows<EngineQueue>(readEngines)

export async function createQueue(
  tx: Transaction,
  queue: QueueInfo,
  holdsLetters: boolean,
): Promise<QueueRecord> {
  const [queueId = 0] = await takeNumbers(tx, 'queues', 1)
  await tx.run(
    insertQueue,
    queueId,
    queue.queueName,
    queue.namespace,
    queue.createdAt,
    queue.updatedAt,
    ...settingsOf(queue),
    holdsLetters,
  )
  const partitions: Partition[] = []
  for (const [number, part] of (await takeNumbers(tx, 'parts', queue.requestedPartitions)).entries()) {
    const partition = { part, number, idPrefix: newIdPrefix(queue.createdAt), holdsLetters }
    await tx.run(insertPartition, part, queueId, number, partition.idPrefix)
    await tx.run(insertTotals, part)
    partitions.push(partition)
  }
  return { ...queue, queueId, version: 1, holdsLetters, partitions }
}

/** Writes changed settings; partitions stay. */
export async function saveQueue(tx: Transaction, queueId: number, queue: QueueInfo): Promise<void> {
  await tx.run(updateQueue, queueId, queue.updatedAt, ...settingsOf(queue))
}

/** Lets letters into this queue. Its version grows, so every server sees it before its next cycle. */
export async function expectLetters(tx: Transaction, queue: QueueRecord): Promise<void> {
  if (!queue.holdsLetters) await tx.run(markHoldsLetters, queue.queueId, true)
}

/** Removes the queue; its items are out of reach at commit and removed later, in batches. */
export async function dropQueue(tx: Transaction, queue: QueueRecord, now: Instant): Promise<void> {
  await tx.run(deleteQueue, queue.queueId)
  await tx.run(deletePartitions, queue.queueId)
  for (const { part } of queue.partitions) await tx.run(dropPart, part, now)
}

/** Fresh serials, ascending. */
export const allocateSerials = (tx: Transaction, count: number): Promise<number[]> =>
  takeNumbers(tx, 'items', count)

const recordOf = (
  { id, name, ...queue }: RowOf<typeof QUEUE>,
  partitions: readonly PartitionRow[],
): QueueRecord => ({
  ...queue,
  queueName: name,
  queueId: id,
  partitions: partitions.map((partition) => ({
    part: Number(partition.part),
    number: Number(partition.number),
    idPrefix: partition.id_prefix,
    holdsLetters: queue.holdsLetters,
  })),
})

/** Settings that an update may change, in column order. */
const settingsOf = (queue: QueueInfo): readonly Value[] => [
  queue.leaseTimeoutNs,
  queue.expireTimeoutNs,
  queue.maxAttempts,
  queue.requestedPartitions,
  queue.deadQueue || null,
  textBytes(queue.reference),
  queue.onDeath,
]
