/**
 * The one interface that every benchmarked system implements, ours and the peers alike. It is as small as the
 * workloads allow: put items in, consume them with a no-op, count what lies in the store.
 */

/** What travels: a running number, so that delivery can be checked, and text up to 140 bytes of JSON. */
export interface Payload {
  readonly n: number
  readonly text: string
}

/** `fail` makes every item fail its last attempt, so that it lands in the dead letter queue. */
export type Ending = 'complete' | 'fail'

/** Some peers need other settings for throughput than for latency; each is given its best for both. */
export type Aim = 'throughput' | 'latency'

export interface Consumption {
  readonly ending: Ending
  readonly aim: Aim
  /** Called once per delivered item, with its number. */
  seen(n: number): void
}

export interface Consumer {
  /** Returns when nothing is in flight any more. */
  stop(): Promise<void>
}

export interface Counts {
  /** Not finished: ready, active or leased. */
  readonly waiting: number
  /** Failed for good and kept: a dead letter. */
  readonly dead: number
}

/** Where a system may keep its things during one run. */
export interface Surroundings {
  readonly postgresUrl: string
  readonly redisPort: number
  readonly folder: string
  readonly aim: Aim
}

export interface System {
  /** How many `enqueueBatch` calls in flight serve it best. */
  readonly batchesInFlight: number
  /** The processes, besides this one, that belong to the system and not to its database. */
  readonly processIds: readonly number[]
  enqueueBatch(payloads: readonly Payload[]): Promise<void>
  enqueueOne(payload: Payload): Promise<void>
  consume(consumption: Consumption): Promise<Consumer>
  counts(): Promise<Counts>
  close(): Promise<void>
}

export type OpenSystem = (surroundings: Surroundings) => Promise<System>

const payloadBytes = 140
const filler =
  'a dead letter office for the messages that nobody could process, counted exactly and never lost; '.repeat(
    2,
  )

/** A payload whose JSON is 140 bytes long. */
export function payload(n: number): Payload {
  return { n, text: filler.slice(0, payloadBytes - `{"n":${n},"text":""}`.length) }
}

/** What a failing consumer throws. It has no stack, which peers would store with every dead letter. */
export const lastFailure = Object.assign(new Error('the last attempt failed'), {
  stack: 'the last attempt failed',
})

/** The payloads numbered from `first`. */
export function payloads(first: number, count: number): Payload[] {
  return Array.from({ length: count }, (_, offset) => payload(first + offset))
}
