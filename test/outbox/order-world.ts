/**
 * A small world for dispatchers: an outbox, several dispatchers with clocks that a test moves together, messages whose
 * fates are known, and a journal of everything that reached the receiver. A dispatcher can fall silent, as a process that
 * is paused or killed does: its clock stands still and its deliveries do not end.
 */
import { setImmediate as turn } from 'node:timers/promises'
import pg from 'pg'
import { TestClock } from '../../src/core/test-clock.ts'
import { PermanentError } from '../../src/core/thrown.ts'
import {
  createDispatcher,
  type RunningDispatcher,
} from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import type { OutboxMessage } from '../../src/sources/outbox/table/message.ts'
import type { OutboxStore } from '../world/outbox.ts'
import { seededRandom } from '../world/random.ts'

export const MAX_RETRIES = 3
export const CLAIM_SECONDS = 60
const SECOND = 1_000_000n

/** What is to become of a message. */
export interface Fate {
  readonly line: number | null
  /** Deliveries that fail before one succeeds. */
  readonly failures: number
  /** The receiver will never take it. */
  readonly refused: boolean
}

/** One thing that happened at the receiver. */
export interface Entry {
  readonly what: 'begin' | 'success' | 'failure' | 'death'
  readonly message: number
  /** In which step of the story the dispatcher that delivers it claimed it, at the earliest. */
  readonly claimedIn: number
}

/** What is known of a message beside its fate. */
export interface Known {
  readonly fate: Fate
  failuresLeft: number
  /** The step after which everybody could see it; null: never. */
  committedIn: number | null
}

export interface WorkerSettings {
  readonly batchSize: number
  readonly concurrency: number
}

interface Worker {
  readonly dispatcher: RunningDispatcher
  readonly clock: TestClock
  /** Deliveries until it falls silent. */
  deliveriesLeft: number
  silent: boolean
  claimedIn: number
  draining: Promise<void>
  /** Resolves when it has fallen silent. */
  readonly fell: PromiseWithResolvers<void>
  /** Resolves when it is no longer silent. */
  readonly woke: PromiseWithResolvers<void>
}

interface OpenTransaction {
  readonly messages: readonly number[]
  end(commits: boolean): Promise<void>
}

export class World {
  readonly journal: Entry[] = []
  readonly known: Known[] = []
  readonly violations: string[] = []
  readonly #outbox: OutboxStore
  readonly #onDead: 'hold' | 'skip'
  readonly #settings: WorkerSettings
  readonly #random = seededRandom(7)
  readonly #clock = new TestClock()
  readonly #workers: Worker[] = []
  readonly #silent: Worker[] = []
  readonly #open: OpenTransaction[] = []
  readonly #underway = new Map<number, Worker>()
  #step = 0

  constructor(outbox: OutboxStore, onDead: 'hold' | 'skip', settings: WorkerSettings) {
    this.#outbox = outbox
    this.#onDead = onDead
    this.#settings = settings
    this.#clock.freeze(this.#clock.now())
  }

  /** The next step of the story begins. */
  nextStep(): void {
    this.#step += 1
  }

  /** Adds messages in a transaction of their own. */
  async insert(fates: readonly Fate[]): Promise<void> {
    for (const fate of fates) {
      const message = this.#meet(fate)
      await throughLocks(() => this.#outbox.insert(rowOf(message, fate)))
      this.#commit([message])
    }
  }

  /** Begins a transaction that adds messages, and leaves it open. SQLite has one writer: there they come later, back-dated. */
  async beginLate(fates: readonly Fate[]): Promise<void> {
    const messages = fates.map((fate) => this.#meet(fate))
    const rows = fates.map((fate, i) => rowOf(messages[i] ?? -1, fate))
    const end =
      this.#outbox.dialect === 'postgres'
        ? await heldOpen(this.#outbox, rows)
        : await backDated(this.#outbox, rows)
    this.#open.push({ messages, end })
  }

  async endLate(which: number, commits: boolean): Promise<void> {
    const [transaction] = this.#open.splice(which % Math.max(1, this.#open.length), 1)
    if (transaction === undefined) return
    await transaction.end(commits)
    if (commits) this.#commit(transaction.messages)
  }

  /** So many dispatchers deliver at the same time what is due. */
  async drain(count: number): Promise<void> {
    while (this.#workers.length < count) this.#workers.push(this.#worker(Number.POSITIVE_INFINITY))
    await Promise.all(
      this.#workers.slice(0, count).map((worker) => {
        worker.claimedIn = this.#step
        return worker.dispatcher.drain()
      }),
    )
  }

  /** A dispatcher claims, ends some deliveries, and falls silent in the middle of another. */
  async fallSilent(after: number): Promise<void> {
    const worker = this.#worker(after)
    worker.draining = worker.dispatcher.drain()
    await Promise.race([worker.fell.promise, worker.draining])
    worker.silent = true
    this.#silent.push(worker)
  }

  /** One that was silent goes on where it was, and finds that it is later. */
  async wakeSilent(): Promise<void> {
    const worker = this.#silent.shift()
    if (worker === undefined) return
    worker.silent = false
    worker.clock.freeze(this.#clock.now())
    worker.deliveriesLeft = Number.POSITIVE_INFINITY
    worker.woke.resolve()
    await worker.draining
    this.#workers.push(worker)
  }

  advance(seconds: number): void {
    this.#clock.advance(BigInt(seconds) * SECOND)
    for (const { clock } of this.#workers) clock.freeze(this.#clock.now())
  }

  /** Everything that is open ends, and enough time passes for everything to come to its end. */
  async finish(): Promise<void> {
    while (this.#open.length > 0) {
      this.nextStep()
      await this.endLate(0, true)
    }
    // What silent ones hold takes two moves of the clock, and retries less than one.
    for (let quiet = 0; quiet < 4; quiet++) {
      const entries = this.journal.length
      this.nextStep()
      this.advance(CLAIM_SECONDS / 2 + 1)
      await this.drain(2)
      if (this.journal.length > entries) quiet = 0
    }
  }

  async close(): Promise<void> {
    for (const transaction of this.#open.splice(0)) await transaction.end(false)
    while (this.#silent.length > 0) await this.wakeSilent()
    await Promise.all(this.#workers.map(({ dispatcher }) => dispatcher.stop()))
  }

  #meet(fate: Fate): number {
    return this.known.push({ fate, failuresLeft: fate.failures, committedIn: null }) - 1
  }

  #commit(messages: readonly number[]): void {
    for (const message of messages) {
      const known = this.known[message]
      if (known !== undefined) known.committedIn = this.#step
    }
  }

  #worker(deliveriesLeft: number): Worker {
    const clock = new TestClock()
    clock.freeze(this.#clock.now())
    const worker: Worker = {
      clock,
      deliveriesLeft,
      silent: false,
      claimedIn: this.#step,
      draining: Promise.resolve(),
      fell: Promise.withResolvers(),
      woke: Promise.withResolvers(),
      dispatcher: createDispatcher({
        url: this.#outbox.url,
        clock,
        transport: (message, signal) => this.#deliver(worker, message, signal),
        onDead: this.#onDead,
        maxRetries: MAX_RETRIES,
        baseRetryDelaySeconds: 1,
        jitter: 0,
        claimSeconds: CLAIM_SECONDS,
        deliveryTimeoutSeconds: 3_600,
        ...this.#settings,
      }),
    }
    return worker
  }

  async #deliver(worker: Worker, { payload, retryCount }: OutboxMessage, signal: AbortSignal): Promise<void> {
    const message = Number(Buffer.from(payload).toString())
    const known = this.known[message]
    if (known === undefined) throw new PermanentError(`nobody wrote message ${message}`)
    const write = (what: Entry['what']) =>
      void this.journal.push({ what, message, claimedIn: worker.claimedIn })
    this.#begin(worker, message)
    write('begin')
    try {
      worker.deliveriesLeft -= 1
      for (let turns = this.#random.whole(0, 3); turns > 0; turns--) await turn()
      if (worker.deliveriesLeft < 0) {
        worker.fell.resolve()
        await worker.woke.promise
      }
      signal.throwIfAborted()
      if (known.fate.refused) {
        write('death')
        throw new PermanentError('never')
      }
      if (known.failuresLeft > 0) {
        known.failuresLeft -= 1
        write(retryCount >= MAX_RETRIES ? 'death' : 'failure')
        throw new Error('not now')
      }
      write('success')
    } finally {
      if (this.#underway.get(message) === worker) this.#underway.delete(message)
    }
  }

  #begin(worker: Worker, message: number): void {
    const line = this.known[message]?.fate.line
    for (const [other, by] of this.#underway) {
      const isSameLine = line !== null && this.known[other]?.fate.line === line
      if (other !== message && !isSameLine) continue
      // A silent one counts as long as its claim lasts by the clock of the others.
      const lastsUs = by.clock.now() + BigInt(CLAIM_SECONDS) * SECOND - this.#clock.now()
      if (by.silent && lastsUs <= 0n) continue
      this.violations.push(`${message} is delivered while ${other} is`)
    }
    this.#underway.set(message, worker)
  }
}

const rowOf = (message: number, { line }: Fate) => ({
  payload: String(message),
  ...(line === null ? {} : { line: `line ${line}` }),
})
type NewRow = ReturnType<typeof rowOf>

const COLUMNS = 'tenant_id, event_type, payload, ordering_key'

/** Waits for SQLite's lock without blocking: whoever holds it lives on the same event loop. */
async function throughLocks<T>(write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof Error) || !/database is locked/.test(error.message)) throw error
      await turn()
    }
  }
}

/** Inserts now and commits when told to. */
async function heldOpen(outbox: OutboxStore, rows: readonly NewRow[]) {
  const client = new pg.Client({ connectionString: outbox.url })
  await client.connect()
  await client.query('BEGIN')
  for (const { payload, line = null } of rows)
    await client.query(`INSERT INTO outbox_messages (${COLUMNS}) VALUES ('t', 'created', $1, $2)`, [
      Buffer.from(payload),
      line,
    ])
  return async (commits: boolean) => {
    await client.query(commits ? 'COMMIT' : 'ROLLBACK')
    await client.end()
  }
}

/** Inserts when told to, as of now. */
async function backDated(outbox: OutboxStore, rows: readonly NewRow[]) {
  const [now] = await outbox.query(`SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER) AS us`)
  return async (commits: boolean) => {
    if (!commits) return
    for (const { payload, line = null } of rows)
      await throughLocks(() =>
        outbox.query(
          `INSERT INTO outbox_messages (${COLUMNS}, created_at) VALUES ('t', 'created', $1, $2, $3)`,
          Buffer.from(payload),
          line,
          now?.us,
        ),
      )
  }
}
