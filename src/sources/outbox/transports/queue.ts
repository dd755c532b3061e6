/**
 * Delivers into a queue of an office. From another database that is a call that can be repeated, and the key drops
 * doubles; within the office's own store it is the transaction that settles the message: exactly once.
 *
 * The item has the payload, the event type as kind and the idempotency key as reference. Its encoding is a media type
 * with tenant and correlation: `application/json; tenant-id=acme; correlation-id=c-1`.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../core/clock.ts'
import { BartlebyError } from '../../../core/errors.ts'
import { Semaphore } from '../../../core/semaphore.ts'
import { untilAborted } from '../../../core/waiting.ts'
import { inOffice, type OfficeWork } from '../../../letters/work.ts'
import type { ItemContent } from '../../../queues/queue.ts'
import type { Queues } from '../../../queues/queues.ts'
import { checkQueueName } from '../../../queues/validate.ts'
import type { Database } from '../../../store/database.ts'
import { checkFunctions, checkNames, quoted, refuse } from '../refusal.ts'
import type { OutboxMessage } from '../table/message.ts'
import { guessedContentType, namedContentType, tokenEncoded } from './encoding.ts'
import type { LocalTransport, Transport } from './transport.ts'

/** Half of what a queue lets wait, for its other producers. */
const MOST_WAITING = 50

/** For outboxes in another database. All its failures are worth a retry. */
export function queueTransport(options: {
  readonly queues: Pick<Queues, 'produce'>
  readonly queue: string
}): Transport {
  checkNames(options, ['queues', 'queue'])
  const { queues, queue } = options
  checkFunctions('queues', queues, ['produce'])
  checkQueue(queue)
  const turns = new Semaphore(MOST_WAITING)
  return {
    name: 'queue',
    async deliver(message, signal) {
      const item = { ...itemOf(message), dedupeKey: dedupeKeyOf(message) }
      await turns.take(signal)
      const producing = queues
        .produce({ queueName: queue, items: [item] })
        .then(() => {})
        .finally(() => turns.giveBack())
      // Given up, it may still arrive; its key drops the double.
      await untilAborted(producing, signal)
    },
  }
}

/** For outboxes in the office's own store. */
export function localQueueTransport(options: {
  readonly db: Database
  readonly clock: Clock
  readonly put: (work: OfficeWork, queueName: string, items: readonly ItemContent[]) => Promise<void>
  readonly queue: string
}): LocalTransport {
  checkNames(options, ['db', 'clock', 'put', 'queue'])
  const { db, clock, put, queue } = options
  checkQueue(queue)
  return {
    name: 'queue',
    transfer: (messages, settle) =>
      inOffice(db, clock, 'outbox.transfer', async (work) => {
        // First: it fails at once when another dispatcher has the messages.
        const settled = await settle(work.tx)
        await put(work, queue, messages.map(itemOf))
        return settled
      }),
  }
}

function checkQueue(name: unknown): void {
  if (typeof name !== 'string') refuse('queue', `${quoted(name)} is no name of a queue`)
  try {
    checkQueueName(name)
  } catch (error) {
    if (error instanceof BartlebyError) refuse('queue', error.message)
    throw error
  }
}

const itemOf = (message: OutboxMessage): ItemContent => ({
  encoding: encodingOf(message),
  kind: message.eventType,
  reference: message.key,
  payload: message.payload,
})

function encodingOf(message: OutboxMessage): string {
  const { tenantId, correlationId, payload } = message
  const parameters = [`tenant-id=${tokenEncoded(tenantId)}`]
  if (correlationId !== null) parameters.push(`correlation-id=${tokenEncoded(correlationId)}`)
  return [namedContentType(message) ?? guessedContentType(payload), ...parameters].join('; ')
}

/** Tenant and key together may be longer than a queue takes. */
const dedupeKeyOf = ({ tenantId, key }: OutboxMessage): string =>
  createHash('sha256')
    .update(JSON.stringify([tenantId, key]))
    .digest('hex')
