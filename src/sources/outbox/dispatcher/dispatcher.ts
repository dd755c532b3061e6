/**
 * The dispatcher: claims messages in short transactions, delivers them outside of any, and settles the results in
 * batches. Any number of them may work on one table; each can be killed at any time.
 *
 *   claim ──► deliver ──► processed
 *     ▲          ├──► failed ── waits ──┐      the claim of a dispatcher that died lapses, and the
 *     │          └──► dead (a letter)   │      message is delivered again with the same key
 *     └─────────────────────────────────┘
 *
 * The one worker (core/work) claims, delivers and settles at the same time. This file delivers; claims.ts and
 * settlements.ts are the table's side.
 */
import { randomUUID } from 'node:crypto'
import { type Clock, type Instant, later, microseconds } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import type { Rounds } from '../../../core/rounds.ts'
import { systemClock } from '../../../core/system-clock.ts'
import { holdProcess } from '../../../core/waiting.ts'
import type { Held } from '../../../core/work/held.ts'
import type { Claimed, Trouble } from '../../../core/work/work-table.ts'
import { Worker } from '../../../core/work/worker.ts'
import { type Database, StoreUnavailable } from '../../../store/database.ts'
import type { StoreUrl } from '../../../store/store-url.ts'
import type { OutboxMeter } from '../served/meter.ts'
import type { Purged } from '../sql/purge.ts'
import type { MessageTable } from '../sql/table.ts'
import {
  ClaimLost,
  DeliveryTimedOut,
  isLocal,
  type LocalTransport,
  type Transport,
} from '../transports/transport.ts'
import { Claims } from './claims.ts'
import { announceCommits, type CommitWatch } from './commit-watch.ts'
import { LineOrder } from './line-order.ts'
import { Maintenance } from './maintenance.ts'
import type { DispatcherSettings } from './options.ts'
import {
  type Delivery,
  DispatcherStopped,
  GIVEN_BACK,
  mostClaims,
  type Outcome,
  outcomeOf,
  PROCESSED,
  poisoned,
  TRANSFER,
} from './outcome.ts'
import { Settlements } from './settlements.ts'
import { type WorkerLog, workerLog } from './worker-log.ts'

export interface DispatcherParts {
  readonly name: string
  readonly db: Database
  /** Where `db` lies: commits to a file are noticed there. */
  readonly store: StoreUrl
  /** Asked again after a failure. */
  readonly table: () => Promise<MessageTable>
  readonly transport: Transport | LocalTransport
  readonly settings: DispatcherSettings
  readonly clock: Clock
  readonly log: Log
  readonly meter: OutboxMeter
  /** Rows died, or arrived after they had died. */
  readonly onLetterDue?: () => void
  readonly onStopped?: () => Promise<void>
}

export interface DispatcherContext extends DispatcherParts {
  readonly logEvent: WorkerLog
  /** Unique among all dispatchers ever: it marks claims. */
  readonly claimedBy: string
}

/** How long a stop lets deliveries end, and how long what was cut short may be given back. */
const STOP_MS = 4_000
const LAST_WRITES_MS = 3_000
const OUTAGE = { baseMs: 100, factor: 2, maxMs: 5_000, jitter: 0.5 }
const MOST_SETTLED = 1_000
/** A row refused so often is left to its claim, which lapses: the others must not wait. */
const MOST_REFUSALS = 10
/**
 * A delivery whose claim could not be renewed ends so long before the claim, or a sixth of a short one: another
 * dispatcher may begin it then.
 */
const DROP_US = 500_000n

export class Dispatcher {
  readonly #context: DispatcherContext
  readonly #claimUs: bigint
  readonly #settlements: Settlements
  readonly #claims: Claims
  readonly #worker: Worker<Delivery, Outcome>
  readonly #maintenance: Maintenance
  #watch: CommitWatch | undefined
  #stopped: Promise<void> | undefined

  constructor(parts: DispatcherParts) {
    const { name, log, settings } = parts
    this.#context = { ...parts, logEvent: workerLog(log, name), claimedBy: `${name}-${randomUUID()}` }
    this.#claimUs = microseconds(settings.claimSeconds)
    const wake = () => this.wake()
    this.#settlements = new Settlements(this.#context, wake)
    this.#claims = new Claims(this.#context, this.#settlements, () => this.#worker.idle())
    this.#worker = this.#makeWorker()
    this.#maintenance = new Maintenance(parts, wake)
  }

  #makeWorker(): Worker<Delivery, Outcome> {
    const { clock, settings, transport } = this.#context
    const { batchSize, concurrency, deliveryTimeoutSeconds } = settings
    const sixthUs = this.#claimUs / 6n
    return new Worker<Delivery, Outcome>({
      ...{ clock, waitsBy: systemClock(), outage: OUTAGE, holdsProcess: true, concurrency },
      table: {
        claim: ({ signal }) => this.#claims.next(signal),
        renew: (held) => this.#renew(held),
        settle: (results) => this.#settlements.settle(results),
        // A statement that times out behind a migration's lock loses no claim.
        blame: (error, _, during) =>
          during === 'renew' || error instanceof StoreUnavailable ? 'away' : 'refused',
        groupOf: (_, outcome) => (outcome?.kind === 'transfer' ? 'transfer' : 'settle'),
        idOf: ({ message }) => message.id,
      },
      order: new LineOrder(settings.onDead),
      // Room for whole batches only: one is held while the next is claimed.
      room: ({ held }) => (held <= batchSize ? batchSize : 0),
      known: (delivery) => this.#known(delivery),
      run: (held) => (isLocal(transport) ? Promise.resolve(TRANSFER) : this.#deliver(transport, held)),
      unbegun: () => GIVEN_BACK,
      reasonOf: (why) => {
        if (why === 'late') return new DeliveryTimedOut('the delivery took too long and was cut short')
        if (why === 'stopped') return new DispatcherStopped('the dispatcher was stopped')
        return new ClaimLost('the claim could not be renewed; another dispatcher may have the message')
      },
      onTrouble: (during, error, held) => this.#report(during, error, held),
      timeoutUs: microseconds(deliveryTimeoutSeconds),
      dropUs: sixthUs < DROP_US ? sixthUs : DROP_US,
      mostSettled: () => MOST_SETTLED,
      mostRefusals: MOST_REFUSALS,
      lastWritesMs: LAST_WRITES_MS,
    })
  }

  /** Resolves once the table was read; rejects when it is no outbox. */
  async start(): Promise<void> {
    const { layout } = await this.#context.table()
    if (this.#stopped !== undefined) return
    void this.#worker.start()
    this.#watch ??= await announceCommits(this.#context, layout.channel, () => this.wake())
    // Stopped meanwhile.
    if (this.#stopped !== undefined) this.#watch?.stop()
    this.#maintenance.start()
  }

  get rounds(): readonly Rounds[] {
    return [...this.#maintenance.rounds, ...(this.#watch?.rounds ?? [])]
  }

  /** Looks at once. Not needed where the database notifies. */
  wake(): void {
    this.#worker.wake()
  }

  /** Delivers everything due now, and what becomes due by that. */
  async drain(): Promise<void> {
    const letProcessGo = holdProcess()
    try {
      while (!this.#worker.isStopping) {
        if (await this.#moves(() => this.#claims.batch())) continue
        if (await this.#moves((signal) => this.#claims.suspect(signal))) continue
        if (!(await this.#maintenance.lookAtLines())) return
      }
    } finally {
      letProcessGo()
    }
  }

  /** Purges now; it happens by itself once a minute. */
  purge(): Promise<Purged> {
    return this.#maintenance.purge()
  }

  /** Gives back what was not begun, waits for what was, and closes the connections. Safe to repeat. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    const { transport, onStopped } = this.#context
    this.#watch?.stop()
    await Promise.all([this.#worker.stop(STOP_MS), this.#maintenance.stop()])
    await transport.close?.()
    await onStopped?.()
  }

  /** Claims, and waits until nothing is held. False: nothing was there. True also when the dispatcher stops. */
  async #moves(claim: (signal: AbortSignal) => Promise<Claimed<Delivery>>): Promise<boolean> {
    const { again } = await this.#worker.claimOnce(claim)
    await this.#worker.idle()
    return again === 'now' || this.#worker.isStopping
  }

  async #renew(held: readonly Held<Delivery>[]): Promise<ReadonlyMap<Held<Delivery>, Instant>> {
    const { db, claimedBy, clock } = this.#context
    const table = await this.#context.table()
    const until = later(clock.now(), this.#claimUs)
    const ids = held.map(({ job }) => job.message.id)
    const { renewed, locked } = await table.renew(db, ids, claimedBy, until)
    const ends = new Map<Held<Delivery>, Instant>()
    for (const each of held) {
      const { id } = each.job.message
      if (renewed.has(id)) ends.set(each, until)
      else if (locked.has(id)) ends.set(each, each.until)
    }
    return ends
  }

  /** The result of a message that is not delivered from here. */
  #known({ message }: Delivery): Outcome | undefined {
    const { logEvent, settings, transport } = this.#context
    if (message.alreadyProcessed) {
      logEvent('SKIP_PROCESSED', { id: message.id })
      return PROCESSED
    }
    if (message.claims > mostClaims(settings)) return poisoned(message, settings)
    return isLocal(transport) ? TRANSFER : undefined
  }

  async #deliver(transport: Transport, held: Held<Delivery>): Promise<Outcome> {
    const { clock, settings, meter } = this.#context
    const { message } = held.job
    const startedMs = performance.now()
    const seconds = () => (performance.now() - startedMs) / 1_000
    try {
      await held.unlessEnded(() => transport.deliver(message, held.signal))
      meter.dispatched(seconds())
      return PROCESSED
    } catch (caught) {
      const outcome = outcomeOf(caught, message, settings, clock.now())
      if (outcome.kind !== 'released') meter.failed(seconds())
      return outcome
    }
  }

  #report(during: Trouble, error: unknown, held: readonly Held<Delivery>[]): void {
    const { log, name } = this.#context
    if (during === 'lost') return
    const about = { err: error, outbox: name }
    if (during === 'renew') log.warn(about, TROUBLE[during])
    else if (during !== 'refused') log.error(about, TROUBLE[during])
    if (during !== 'refused' && during !== 'late') return
    for (const { job } of held) {
      this.#settlements.drop(job)
      if (during === 'refused') log.error({ ...about, id: job.message.id }, TROUBLE[during])
    }
  }
}

const TROUBLE: Readonly<Record<Exclude<Trouble, 'lost'>, string>> = {
  claim: 'outbox messages could not be claimed',
  renew: 'claims of outbox messages could not be renewed',
  settle: 'outbox messages could not be settled',
  late: 'outbox messages could not be settled',
  refused: 'an outbox message cannot be settled; its claim is left to lapse',
  run: 'an outbox message could not be delivered; its claim is left to lapse',
}
