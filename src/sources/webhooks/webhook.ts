/**
 * The words of webhooks: who sends, who receives, what is sent, and the jobs that deliver it.
 *
 *   broadcast ──► message ──► one job per consumer of the channel
 *
 *   ready ──► in flight ──► delivered
 *     ▲ ▲        │  ├─────► dead ─── requeued ──► ready      a dead job is a letter of engine `webhooks`
 *     │ └ later ◄┘  │                                        (a pull consumer may also take it: dead ──► in flight)
 *     └─────────────┘                                        every arrow is one transaction with its counts
 */
import { xid } from '../../core/xid.ts'
import type { Integer } from '../../store/database.ts'
import { at, integer, type RowOf, rowShape, text } from '../../store/row.ts'

/** Source and engine of dead jobs' letters. */
export const WEBHOOKS = 'webhooks'

const OF_HOLDERS = { id: xid, name: text, token: text, createdAt: at, updatedAt: at }

export const PRODUCER = rowShape({ ...OF_HOLDERS, producerId: text })
export type Producer = RowOf<typeof PRODUCER>
/** A producer, channel or consumer without its public id. */
export type Holder = Omit<Producer, 'producerId'>

/** Messages, consumers and counts know a channel by its number. */
export const CHANNEL = rowShape({ ...OF_HOLDERS, number: integer, channelId: text })
export type Channel = RowOf<typeof CHANNEL>

export const CONSUMER_TYPES = ['push', 'pull'] as const
export type ConsumerType = (typeof CONSUMER_TYPES)[number]
export const consumerType = (pulls: Integer): ConsumerType => (Number(pulls) === 1 ? 'pull' : 'push')

/** Jobs and counts know a consumer by its number. Select `pulls AS type`. */
export const CONSUMER = rowShape({
  ...OF_HOLDERS,
  ...{ number: integer, consumerId: text, callbackUrl: text, type: consumerType },
  /** The number of its channel. */
  channel: integer,
})
export type Consumer = RowOf<typeof CONSUMER>

/** In the order in which they were named, with the caller's spelling. */
export type HeaderList = readonly (readonly [name: string, value: string])[]

/** As they were written when the message was accepted. */
export const headerList = (stored: string): HeaderList => JSON.parse(stored) as HeaderList

/** Set by every delivery, or a matter of its connection. */
export const DELIVERY_HEADERS = [
  'content-type',
  'user-agent',
  'x-request-id',
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'expect',
] as const

export interface MessageContent {
  readonly payload: Uint8Array
  readonly contentType: string
  readonly priority: number
  readonly headers: HeaderList
}

/** `later` (not due yet) and `ready` are both QUEUED outside. */
export const JOB = { later: 0, ready: 1, inFlight: 2, delivered: 3, dead: 4 } as const
export type JobState = (typeof JOB)[keyof typeof JOB]

/** For jobs known by id: equality would invite the index of all dead jobs. */
export const IS_DEAD = `state > ${JOB.delivered}`

export const JOB_STATUSES = ['QUEUED', 'INFLIGHT', 'DELIVERED', 'DEAD'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

export const JOB_STATUS_CODE: Readonly<Record<JobStatus, number>> = {
  QUEUED: 1001,
  INFLIGHT: 1002,
  DELIVERED: 1003,
  DEAD: 1004,
}

/** As the outside sees it. */
export function statusOf(state: number): JobStatus {
  switch (state) {
    case JOB.later:
    case JOB.ready:
      return 'QUEUED'
    case JOB.inFlight:
      return 'INFLIGHT'
    case JOB.delivered:
      return 'DELIVERED'
    case JOB.dead:
      return 'DEAD'
    default:
      throw new Error(`there is no job state ${state}`)
  }
}

/** Scheduled messages have the same two. */
export const MESSAGE_STATUS_CODE = { ACKNOWLEDGED: 101, SCHEDULED: 101, DISPATCHED: 102 } as const

/** Ambiguous or invisible in the name of a queue. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPLAIN = /[%/\x00-\x1f\x7f]/g

/**
 * Both ids, so that equal ids on two channels stay apart. Encodes as little as possible: two ids of 255 characters, percent-encoded, are
 * longer than PostgreSQL takes into an index.
 */
export const queueOfConsumer = (channelId: string, consumerId: string): string =>
  [channelId, consumerId].map((id) => id.replace(UNPLAIN, encodeURIComponent)).join('/')

/** The inverse; null for any other name. */
export function idsOfQueue(queue: string): readonly [channelId: string, consumerId: string] | null {
  const [channelId, consumerId, ...rest] = queue.split('/')
  if (channelId === undefined || consumerId === undefined || rest.length > 0) return null
  try {
    return [decodeURIComponent(channelId), decodeURIComponent(consumerId)]
  } catch {
    return null
  }
}
