/**
 * Keeps the leases of an engine alive while its handlers run: all of them together, whenever a third of the shortest
 * lease has passed, so that two renewals may fail before one is lost. The message of a lease that is lost may be with
 * another worker already: its run is ended.
 */
import { type Alarm, type Clock, type Instant, later } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { LeasedItem } from '../../queues/queue.ts'

export class Holding {
  readonly item: LeasedItem
  readonly partition: number
  /** Ends the run; the reason says why (`HandlerTimedOut`, `LeaseLost`, `EngineStopped`). */
  readonly abort = new AbortController()
  leaseDeadline: Instant
  /** The result is being written: whoever now finds the lease gone finds what was written. */
  settling = false

  constructor(item: LeasedItem, partition: number) {
    this.item = item
    this.partition = partition
    this.leaseDeadline = item.leaseDeadline
  }
}

/** A handler did not return in time. It is left to itself, and what it still returns is ignored. */
export class HandlerTimedOut extends Error {
  override readonly name = 'HandlerTimedOut'
}

/** The message is no longer this worker's: its lease ended and somebody else may have it. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** The engine was stopped while the handler ran. */
export class EngineStopped extends Error {
  override readonly name = 'EngineStopped'
}

export interface KeeperOptions {
  readonly clock: Clock
  readonly log: Log
  /** Lengthens leases of one partition, all or none; gives the new deadline. */
  readonly extend: (partition: number, ids: readonly string[]) => Promise<Instant>
}

/** After failures, and when a lease is about to end, renewals come no closer than this. */
const SHORTEST_PAUSE_US = 200_000n

export class LeaseKeeper {
  readonly #options: KeeperOptions
  readonly #held = new Set<Holding>()
  #alarm: Alarm | undefined
  #alarmAt: Instant | undefined
  #renewing: Promise<void> | undefined
  #stopped = false

  constructor(options: KeeperOptions) {
    this.#options = options
  }

  keep(holding: Holding): void {
    this.#held.add(holding)
    this.#arm()
  }

  release(holding: Holding): void {
    this.#held.delete(holding)
    if (this.#held.size === 0) this.#disarm()
  }

  /** Renews one lease now; rejects when it is lost or the store cannot say. */
  async renew(holding: Holding): Promise<void> {
    const { signal } = holding.abort
    signal.throwIfAborted()
    try {
      const deadline = await this.#options.extend(holding.partition, [holding.item.id])
      if (deadline > holding.leaseDeadline) holding.leaseDeadline = deadline
    } catch (error) {
      if (isRefusal(error)) this.#lose(holding)
      signal.throwIfAborted()
      throw error
    }
  }

  /** Renews no more; resolves when no renewal is under way. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#disarm()
    await this.#renewing
  }

  #arm(): void {
    if (this.#stopped || this.#renewing !== undefined || this.#held.size === 0) return
    const now = this.#options.clock.now()
    let shortestUs: bigint | undefined
    for (const { leaseDeadline } of this.#held) {
      const restUs = leaseDeadline - now
      if (shortestUs === undefined || restUs < shortestUs) shortestUs = restUs
    }
    const thirdUs = (shortestUs ?? 0n) / 3n
    const at = later(now, thirdUs > SHORTEST_PAUSE_US ? thirdUs : SHORTEST_PAUSE_US)
    if (this.#alarmAt !== undefined && this.#alarmAt <= at) return
    this.#disarm()
    this.#alarmAt = at
    this.#alarm = this.#options.clock.alarm(at, () => {
      this.#disarm()
      this.#renewing = this.#renewAll().finally(() => {
        this.#renewing = undefined
        this.#arm()
      })
    })
  }

  #disarm(): void {
    this.#alarm?.cancel()
    this.#alarm = undefined
    this.#alarmAt = undefined
  }

  async #renewAll(): Promise<void> {
    const byPartition = Map.groupBy(this.#held, ({ partition }) => partition)
    await Promise.all([...byPartition].map(([partition, group]) => this.#renewGroup(partition, group)))
  }

  async #renewGroup(partition: number, group: readonly Holding[]): Promise<void> {
    try {
      const deadline = await this.#options.extend(
        partition,
        group.map(({ item }) => item.id),
      )
      for (const holding of group) holding.leaseDeadline = deadline
    } catch (error) {
      // One lease that is gone refuses all of them: find out which.
      if (isRefusal(error) && group.length > 1) {
        for (const holding of group) if (this.#held.has(holding)) await this.#renewGroup(partition, [holding])
      } else if (isRefusal(error)) {
        for (const holding of group) this.#lose(holding)
      } else {
        this.#options.log.warn(
          { err: error, leases: group.length },
          'leases could not be renewed, trying again',
        )
      }
    }
  }

  #lose(holding: Holding): void {
    this.release(holding)
    if (holding.settling || holding.abort.signal.aborted) return
    this.#options.log.warn(
      { itemId: holding.item.id },
      'a lease was lost while the handler ran; another worker may have the message',
    )
    holding.abort.abort(new LeaseLost(`the lease of message ${holding.item.id} was lost`))
  }
}

/** The store has answered, and the answer is no. */
const isRefusal = (error: unknown): boolean => error instanceof BartlebyError && !error.retryable
