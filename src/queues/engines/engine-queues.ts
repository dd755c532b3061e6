/**
 * The queues of engines: which belongs to which, how one is created, and what its messages name. The store keeps it, because an item may
 * die on a server that has not heard of the engine. An engine may have several queues; a queue has the engine that was defined last.
 */
import type { Log } from '../../core/log.ts'
import { UNNAMED_INSTANCE as PUBLISHER } from '../../core/source-id.ts'
import { describeError } from '../../core/thrown.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type Database, type Integer, sql, type Transaction } from '../../store/database.ts'
import type { QueueSettings } from '../queue.ts'
import { type EngineQueue, readEngineOf, readEngineQueues, readQueue, takeSettingsTurn } from '../records.ts'
import { createInTurn } from '../settings.ts'

const writeOne = sql(
  'engineQueues.write',
  `INSERT INTO bartleby.engine_queues (queue, engine) VALUES ($1, $2)
   ON CONFLICT (queue) DO UPDATE SET engine = excluded.engine`,
)

/** Records definitions; writes only new ones. */
export async function recordEngineQueues(
  db: Database,
  log: Log,
  defined: readonly EngineQueue[],
): Promise<void> {
  if (defined.length === 0) return
  const known = new Map(
    (await db.session('engineQueues.read', readEngineQueues)).map(({ queue, engine }) => [queue, engine]),
  )
  const last = new Map(defined.map((each) => [each.queue, each]))
  const news = [...last.values()].filter(({ queue, engine }) => known.get(queue) !== engine)
  if (news.length === 0) return
  await db.transaction('engineQueues.record', async (tx) => {
    for (const { queue, engine } of news) await tx.run(writeOne, queue, engine)
  })
  for (const { queue, engine } of news) {
    const before = known.get(queue)
    if (before !== undefined)
      log.warn(
        { queue, engine, before },
        'the queue is now that of another engine: what dies in it is filed under this one',
      )
  }
}

/** Long enough for a pause of the worker, short enough to notice a crash soon. */
const LEASE_TIMEOUT = '1m'
/** The longest possible: messages of engines do not expire, they succeed or become letters. */
const EXPIRE_TIMEOUT = '2562047h47m16s'

/** Settings of a queue created by an engine's first worker or the first letter that goes back. */
export const engineQueueSettings = (engine: string, queueName: string): QueueSettings => ({
  queueName,
  leaseTimeout: LEASE_TIMEOUT,
  expireTimeout: EXPIRE_TIMEOUT,
  maxAttempts: 0,
  requestedPartitions: 1,
  reference: `engine ${engine}`,
})

/** Creates the engine's own queue if it is missing; false when it is not the engine's. Of two transactions the second waits and finds it. */
export async function makeEngineQueue(
  { tx, now }: Pick<OfficeWork, 'tx' | 'now'>,
  engine: string,
  queueName: string,
): Promise<boolean> {
  if ((await readEngineOf(tx, queueName)) !== engine) return false
  await takeSettingsTurn(tx)
  if ((await readQueue(tx, queueName)) === null) {
    await createInTurn(tx, now, engineQueueSettings(engine, queueName))
  }
  return true
}

/** A payload as JSON in UTF-8, read before it is handled and where it dies unhandled. */
export function readMessage(
  payload: Uint8Array,
): { readonly ok: true; readonly message: unknown } | { readonly ok: false; readonly reason: string } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(payload)
    return { ok: true, message: JSON.parse(text) }
  } catch (error) {
    if (payload.length === 0) return { ok: false, reason: 'it is empty' }
    // The decoder's words differ between versions of Node, and the group of an error must not.
    if (error instanceof TypeError) return { ok: false, reason: 'it is not UTF-8' }
    return { ok: false, reason: describeError(error).errorMessage }
  }
}

const CORRELATION_ID = /^[\x21-\x7e]{1,128}$/

export function correlationIdIn(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || !('correlationId' in message)) return null
  const { correlationId } = message
  return typeof correlationId === 'string' && CORRELATION_ID.test(correlationId) ? correlationId : null
}

const MAX_INSTANCE_ID = 256

/** An instance id from the application, made storable. */
export function cleanInstanceId(given: unknown): string {
  if (typeof given !== 'string' && typeof given !== 'number' && typeof given !== 'bigint') return PUBLISHER
  const clean = String(given).replaceAll('\0', '').slice(0, MAX_INSTANCE_ID).toWellFormed()
  return clean === '' ? PUBLISHER : clean
}

/** null: the message does not say. */
export interface MessageNames {
  readonly instanceId: string | null
  readonly correlationId: string | null
}

/** Longer payloads are not searched for names. */
const MAX_READ_BYTES = 65_536

/** Payloads by primary key, without long ones. */
const readPayloads = sql(
  'items.namingPayloads',
  `SELECT id, payload FROM bartleby.items
   WHERE part = $1 AND shelf = $2 AND id = ANY($3::bigint[]) AND length(payload) <= ${MAX_READ_BYTES}`,
)

/** Names in the messages of items, by serial. */
export async function readMessageNames(
  tx: Transaction,
  part: number,
  shelf: number,
  serials: readonly number[],
): Promise<ReadonlyMap<number, MessageNames>> {
  const rows = await tx.rows<{ id: Integer; payload: Uint8Array }>(readPayloads, part, shelf, serials)
  return new Map(rows.map(({ id, payload }) => [Number(id), namesIn(payload)]))
}

function namesIn(payload: Uint8Array): MessageNames {
  const read = readMessage(payload)
  const message = read.ok ? read.message : null
  return { instanceId: instanceIdIn(message), correlationId: correlationIdIn(message) }
}

function instanceIdIn(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || !('instanceId' in message)) return null
  const { instanceId } = message
  if (typeof instanceId !== 'string') return null
  const clean = cleanInstanceId(instanceId)
  return clean === PUBLISHER && instanceId !== PUBLISHER ? null : clean
}
