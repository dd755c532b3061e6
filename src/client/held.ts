/**
 * The items that a consumer holds, and the loop that keeps their leases alive: each is extended when half of
 * its lease is over. Only elapsed time is measured here; what the server's clock says is derived from the
 * deadlines it sends, so that a wrong clock on this machine does no harm.
 */
import { Signal } from '../core/signal.ts'
import { QueueClientError } from './errors.ts'
import type { LeasedItem } from './types.ts'

/** The server's limit for one call. */
const LARGEST_BATCH = 1000

/** Leases due within this part of their length from now are extended in the same call. */
const GATHER = 0.1

export interface LeaseTerms {
  /** As the server writes it: "1m0s". */
  readonly leaseTimeout: string
  readonly leaseMs: number
}

/** An item that was leased and is not settled yet. */
export class HeldItem {
  readonly item: LeasedItem
  readonly partition: number
  readonly terms: LeaseTerms
  /** Aborted when the lease is lost or the consumer gives up waiting. */
  readonly abort = new AbortController()
  lost = false
  /** When half of the lease is over, on this machine's monotonic clock. */
  extendAtMs: number
  #leaseDeadline: Date
  #renewedAtMs: number

  constructor(item: LeasedItem, partition: number, terms: LeaseTerms) {
    this.item = item
    this.partition = partition
    this.terms = terms
    this.#leaseDeadline = item.leaseDeadline
    this.#renewedAtMs = performance.now()
    this.extendAtMs = this.#renewedAtMs + terms.leaseMs / 2
  }

  /** The lease was lengthened by a call that began at `calledAtMs`. */
  renewed(leaseDeadline: Date, calledAtMs: number): void {
    this.#leaseDeadline = leaseDeadline
    this.#renewedAtMs = calledAtMs
    this.extendAtMs = calledAtMs + this.terms.leaseMs / 2
  }

  /** What the server's clock will show in `ms`: the lease began at its deadline less its length. */
  serverTimeIn(ms: number): Date {
    const elapsedMs = performance.now() - this.#renewedAtMs
    return new Date(this.#leaseDeadline.getTime() - this.terms.leaseMs + elapsedMs + ms)
  }
}

export interface LeaseKeeperOptions {
  readonly extend: (partition: number, ids: readonly string[], leaseTimeout: string) => Promise<Date>
  readonly onProblem: (error: unknown, item?: LeasedItem) => void
}

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #held = new Set<HeldItem>()
  readonly #changed = new Signal()
  #stopped = false

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
  }

  keep(held: HeldItem): void {
    this.#held.add(held)
    this.#changed.notify()
  }

  release(held: HeldItem): void {
    this.#held.delete(held)
  }

  stop(): void {
    this.#stopped = true
    this.#changed.notify()
  }

  /** Extends what is due until `stop`. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      const nextMs = this.#nextMs()
      const waitMs = nextMs - performance.now()
      const isSooner = () => this.#stopped || this.#nextMs() < nextMs
      if (nextMs === Number.POSITIVE_INFINITY) await this.#changed.until(isSooner)
      else if (waitMs > 0) await this.#changed.within(waitMs, isSooner)
      else for (const group of this.#due()) await this.#extend(group)
    }
  }

  /** When the first lease is to be extended. */
  #nextMs(): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const held of this.#held) nextMs = Math.min(nextMs, held.extendAtMs)
    return nextMs
  }

  /** Leases to extend now, in groups that one call can carry. */
  #due(): HeldItem[][] {
    const groups = new Map<string, HeldItem[]>()
    const nowMs = performance.now()
    for (const held of this.#held) {
      if (held.extendAtMs > nowMs + held.terms.leaseMs * GATHER) continue
      const key = `${held.partition} ${held.terms.leaseTimeout}`
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [held])
      else if (group.length < LARGEST_BATCH) group.push(held)
    }
    return [...groups.values()]
  }

  async #extend(group: readonly HeldItem[]): Promise<void> {
    const [first] = group
    if (first === undefined) return
    const { leaseTimeout, leaseMs } = first.terms
    const ids = group.map(({ item }) => item.id)
    const calledAtMs = performance.now()
    try {
      const deadline = await this.#options.extend(first.partition, ids, leaseTimeout)
      for (const held of group) held.renewed(deadline, calledAtMs)
    } catch (error) {
      // Settled while the call was on its way: of no interest any more.
      const remaining = group.filter((held) => this.#held.has(held))
      const refused =
        error instanceof QueueClientError && !error.retryable
          ? group.find(({ item }) => error.message.includes(`'${item.id}'`))
          : undefined
      if (refused === undefined) {
        if (remaining.length > 0) this.#options.onProblem(error)
        for (const held of remaining) held.extendAtMs = performance.now() + leaseMs * GATHER
      } else if (remaining.includes(refused)) {
        this.#lose(refused, error)
      }
    }
  }

  #lose(held: HeldItem, error: unknown): void {
    held.lost = true
    this.release(held)
    held.abort.abort(error)
    this.#options.onProblem(error, held.item)
  }
}
