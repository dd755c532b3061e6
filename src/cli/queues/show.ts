/** How queues and items look: in tables for people, as JSON for programs. */
import { type ItemContent, type Queue, textOf } from '../../client/index.ts'
import type { QueueOverview } from '../../client/source-types.ts'
import { printable, table } from '../terminal.ts'
import { ageOf } from '../times.ts'

const PREVIEW_LENGTH = 60

export const json = (value: unknown): string => JSON.stringify(value, null, 2)

/** An item for programs: the payload as base64, and as text where it is text. */
export function itemForJson<Item extends ItemContent>({ payload, ...item }: Item) {
  return {
    ...item,
    payload: textOf(payload) ?? null,
    payloadBase64: Buffer.from(payload).toString('base64'),
  }
}

/** The beginning of a payload for people. */
export function preview(payload: Uint8Array): string {
  const text = textOf(payload)
  if (text === undefined) return `<${payload.length} bytes>`
  const shown = printable(text)
  return shown.length <= PREVIEW_LENGTH ? shown : `${shown.slice(0, PREVIEW_LENGTH - 1)}…`
}

export function queuesTable(queues: readonly Queue[]): string {
  return table(
    ['QUEUE', 'LEASE', 'EXPIRE', 'ATTEMPTS', 'DEAD QUEUE', 'PARTITIONS', 'REFERENCE'],
    queues.map((queue) => [
      queue.queueName,
      queue.leaseTimeout,
      queue.expireTimeout,
      attemptsOf(queue),
      queue.deadQueue || '-',
      queue.requestedPartitions,
      queue.reference || '-',
    ]),
  )
}

/** What lies in each queue. */
export function depthsTable(queues: readonly QueueOverview[], now: number): string {
  return table(
    ['QUEUE', 'READY', 'LEASED', 'SCHEDULED', 'HELD', 'DEAD', 'LETTERS', 'OLDEST', 'ATTEMPTS', 'DEAD QUEUE'],
    queues.map((queue) => [
      queue.name,
      queue.ready,
      queue.leased,
      queue.scheduled,
      queue.held,
      queue.dead,
      queue.letters,
      ageOf(queue.oldestAtUtc, now),
      attemptsOf(queue),
      queue.deadQueue ?? (queue.onDeath === 'delete' ? '- (deleted)' : '-'),
    ]),
  )
}

export function queueCard(queue: Queue): string {
  return table(
    ['queue', queue.queueName],
    [
      ['lease timeout', queue.leaseTimeout],
      ['expire timeout', queue.expireTimeout],
      ['max attempts', attemptsOf(queue)],
      ['dead queue', queue.deadQueue || '-'],
      ['partitions', String(queue.requestedPartitions)],
      ['reference', queue.reference || '-'],
      ['created', queue.createdAt.toISOString()],
      ['updated', queue.updatedAt.toISOString()],
    ],
  )
}

const attemptsOf = ({ maxAttempts }: Pick<Queue, 'maxAttempts'>): string =>
  maxAttempts === 0 ? 'unlimited' : String(maxAttempts)
