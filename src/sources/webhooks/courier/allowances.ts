/**
 * How many attempts each consumer may have at once and per second. Trust is earned: every success allows one more, a time-out takes half
 * away. Those that hang hold few workers, and nobody gets more than a share of the free ones.
 */
import { type Clock, type Instant, later, microseconds } from '../../../core/clock.ts'
import type { WebhookSettings } from '../settings.ts'
import type { Receiver } from './claim.ts'

interface Allowance {
  running: number
  most: number
  /** However many it may have. */
  trusted: number
  bucket: Bucket | null
}

/** Before its first answer. */
const FIRST_TRUST = 8
/** One in so many of the free workers: more once it has full trust. */
const SHARE = { untried: 4, trusted: 2 } as const
/** One that is alone leaves one in so many workers to whoever comes next. */
const RESERVE = 4
/** Distrusted consumers that get nothing any more, perhaps deleted, are remembered up to this number. */
const MOST_REMEMBERED = 10_000

export class Allowances {
  readonly #clock: Clock
  readonly #delivery: WebhookSettings['delivery']
  readonly #all = new Map<number, Allowance>()
  #running = 0

  constructor(clock: Clock, delivery: WebhookSettings['delivery']) {
    this.#clock = clock
    this.#delivery = delivery
  }

  get running(): number {
    return this.#running
  }

  /** Changes nothing. */
  roomOf(receiver: Receiver, othersWait: boolean): number {
    const known = this.#of(receiver)
    const room = this.#limitOf(known, othersWait) - known.running
    return Math.max(0, Math.min(room, known.bucket?.available(this.#clock.now()) ?? room))
  }

  /** As far as is known without asking the store. */
  mayHaveRoom(consumer: number, othersWait: boolean): boolean {
    const known = this.#all.get(consumer)
    if (known === undefined) return true
    if (known.running >= this.#limitOf(known, othersWait)) return false
    return known.bucket === null || known.bucket.available(this.#clock.now()) > 0
  }

  /** Null without a rate, or while it waits for an attempt to end. */
  nextAt(consumer: number, othersWait: boolean): Instant | null {
    const known = this.#all.get(consumer)
    if (known === undefined || known.running >= this.#limitOf(known, othersWait)) return null
    return known.bucket?.nextAt(this.#clock.now()) ?? null
  }

  began(receiver: Receiver): void {
    const known = this.#of(receiver)
    known.running += 1
    known.bucket?.take(this.#clock.now())
    this.#all.set(receiver.number, known)
    this.#running += 1
  }

  ended(consumer: number, outcome: 'success' | 'timeout' | 'other'): void {
    this.#running -= 1
    const known = this.#all.get(consumer)
    if (known === undefined) return
    // Half of what it had, which may be far below its limit.
    if (outcome === 'timeout')
      known.trusted = Math.max(1, Math.floor(Math.min(known.trusted, known.running) / 2))
    if (outcome === 'success') known.trusted = Math.min(known.most, known.trusted + 1)
    known.running -= 1
  }

  /** Forgets consumers about which there is nothing to remember. */
  sweep(): void {
    const now = this.#clock.now()
    for (const [consumer, { running, trusted, bucket }] of this.#all) {
      if (running > 0 || bucket?.isFull(now) === false) continue
      if (trusted >= FIRST_TRUST || this.#all.size > MOST_REMEMBERED) this.#all.delete(consumer)
    }
  }

  /** With its present limits. */
  #of({ number, mostAtOnce, mostPerSecond }: Receiver): Allowance {
    const known = this.#all.get(number)
    const hasThisRate = known !== undefined && (known.bucket?.perSecond ?? null) === mostPerSecond
    const fresh = () => (mostPerSecond === null ? null : new Bucket(mostPerSecond, this.#clock.now()))
    return {
      running: known?.running ?? 0,
      most: mostAtOnce ?? this.#delivery.consumerWorkers,
      trusted: known?.trusted ?? FIRST_TRUST,
      bucket: hasThisRate ? known.bucket : fresh(),
    }
  }

  #limitOf({ running, most, trusted }: Allowance, othersWait: boolean): number {
    const { workers } = this.#delivery
    const isAlone = !othersWait && running === this.#running
    const share = trusted >= most ? SHARE.trusted : SHARE.untried
    const shared = isAlone
      ? Math.floor(workers - workers / RESERVE)
      : Math.ceil((workers - this.#running) / share)
    return Math.min(most, trusted, Math.max(1, shared))
  }
}

const BURSTS_PER_SECOND = 10
/** More than fractions of numbers lose, and less than anybody notices. */
const TINY = 1e-6
/** The smallest rates are looked at again after so long: their time is beyond instants. */
const LONGEST_WAIT_SECONDS = 86_400

/** A rate, spread evenly: a tenth of a second's worth may come at once. */
export class Bucket {
  readonly perSecond: number
  readonly #most: number
  #tokens: number
  #filledAt: Instant

  constructor(perSecond: number, now: Instant) {
    this.perSecond = perSecond
    this.#most = Math.max(1, perSecond / BURSTS_PER_SECOND)
    this.#tokens = this.#most
    this.#filledAt = now
  }

  available(now: Instant): number {
    return Math.max(0, Math.floor(this.#level(now) + TINY))
  }

  take(now: Instant): void {
    this.#tokens = this.#level(now) - 1
    this.#filledAt = now
  }

  nextAt(now: Instant): Instant {
    const seconds = Math.max(0, 1 - this.#level(now)) / this.perSecond
    return later(now, microseconds(Math.min(seconds, LONGEST_WAIT_SECONDS)))
  }

  isFull(now: Instant): boolean {
    return this.#level(now) >= this.#most
  }

  #level(now: Instant): number {
    // The clock was set back: it goes on from there.
    if (now < this.#filledAt) this.#filledAt = now
    const seconds = Number(now - this.#filledAt) / 1e6
    return Math.min(this.#most, this.#tokens + seconds * this.perSecond)
  }
}
