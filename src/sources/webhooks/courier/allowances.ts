/**
 * How many attempts each consumer may have at the same time, and how many in a second. Trust is earned: a consumer begins with a
 * few attempts, every success allows one more, and a time-out takes half of them away. So those that hang hold few workers, and
 * whatever they hold, no consumer gets more than a share of those that are free.
 */
import { type Clock, type Instant, later, microseconds } from '../../../core/clock.ts'
import type { WebhookSettings } from '../settings.ts'
import type { Receiver } from './claim.ts'

interface Allowance {
  running: number
  /** Its own limit, as it was last seen. */
  most: number
  /** Attempts that it is trusted with, however many it may have. */
  trusted: number
  /** Its rate, as it was last seen. */
  bucket: Bucket | null
}

/** What a consumer is trusted with that has not answered yet. */
const FIRST_TRUST = 8
/** Of the free workers, a consumer gets one in so many: more of them once it has all trust there is. */
const SHARE = { untried: 4, trusted: 2 } as const
/** One that is alone leaves one in so many workers to whoever comes next. */
const RESERVE = 4
/** Those that are trusted with less, and get nothing any more, perhaps because they were deleted, are remembered up to so many. */
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

  /** Attempts that run now. */
  get running(): number {
    return this.#running
  }

  /** How many more attempts may begin at a consumer, when others have ready jobs too or not. Changes nothing. */
  roomOf(receiver: Receiver, othersWait: boolean): number {
    const known = this.#of(receiver)
    const room = this.#limitOf(known, othersWait) - known.running
    return Math.max(0, Math.min(room, known.bucket?.available(this.#clock.now()) ?? room))
  }

  /** Whether a consumer may have room, as far as is known without asking the store. */
  mayHaveRoom(consumer: number, othersWait: boolean): boolean {
    const known = this.#all.get(consumer)
    if (known === undefined) return true
    if (known.running >= this.#limitOf(known, othersWait)) return false
    return known.bucket === null || known.bucket.available(this.#clock.now()) > 0
  }

  /** When a consumer's rate lets its next attempt begin; null when it has none, or waits for an attempt to end. */
  nextAt(consumer: number, othersWait: boolean): Instant | null {
    const known = this.#all.get(consumer)
    if (known === undefined || known.running >= this.#limitOf(known, othersWait)) return null
    return known.bucket?.nextAt(this.#clock.now()) ?? null
  }

  /** An attempt begins. */
  began(receiver: Receiver): void {
    const known = this.#of(receiver)
    known.running += 1
    known.bucket?.take(this.#clock.now())
    this.#all.set(receiver.number, known)
    this.#running += 1
  }

  /** An attempt is over. */
  ended(consumer: number, outcome: 'success' | 'timeout' | 'other'): void {
    this.#running -= 1
    const known = this.#all.get(consumer)
    if (known === undefined) return
    // Half of what it had, which may be far below what it may have.
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

  /** What is known of a consumer, with the limits that it has now. */
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

  /** Attempts that it may have now in all. */
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
/** Far less than anybody can wait for, and more than fractions of numbers lose. */
const TINY = 1e-6
/** The smallest rates are looked at again after so long: what they give is beyond what a time can be. */
const LONGEST_WAIT_SECONDS = 86_400

/** A rate of so many in a second, spread evenly: only what belongs to a tenth of a second may come at once. */
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

  /** How many may begin now. */
  available(now: Instant): number {
    return Math.max(0, Math.floor(this.#level(now) + TINY))
  }

  /** One begins. */
  take(now: Instant): void {
    this.#tokens = this.#level(now) - 1
    this.#filledAt = now
  }

  /** When the next one may begin. */
  nextAt(now: Instant): Instant {
    const seconds = Math.max(0, 1 - this.#level(now)) / this.perSecond
    return later(now, microseconds(Math.min(seconds, LONGEST_WAIT_SECONDS)))
  }

  /** Whether it is as if nothing had ever begun. */
  isFull(now: Instant): boolean {
    return this.#level(now) >= this.#most
  }

  #level(now: Instant): number {
    // The clock was set back: it goes on from there, and does not wait until it is as late again.
    if (now < this.#filledAt) this.#filledAt = now
    const seconds = Number(now - this.#filledAt) / 1e6
    return Math.min(this.#most, this.#tokens + seconds * this.perSecond)
  }
}
