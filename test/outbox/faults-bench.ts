/** What tests of a dispatcher in trouble need: an outbox, a clock, dispatchers that are stopped in the end, their log. */
import { expect } from 'vitest'
import type { Log } from '../../src/core/log.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import {
  createDispatcher,
  type DispatcherOptions,
  type RunningDispatcher,
} from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import type { OutboxMessage } from '../../src/sources/outbox/table/message.ts'
import { OutboxStore } from '../world/outbox.ts'
import type { FreshStore, StoreKind } from '../world/stores.ts'

export const SECOND = 1_000_000n

export class FaultBench {
  readonly outbox: OutboxStore
  readonly store: FreshStore
  readonly clock = new TestClock()
  /** Everything that was logged. */
  readonly said: string[] = []
  /** What was logged as an error. */
  readonly errors: string[] = []
  readonly log: Log
  readonly #running: RunningDispatcher[] = []

  private constructor(outbox: OutboxStore, store: FreshStore) {
    this.outbox = outbox
    this.store = store
    this.clock.freeze(this.clock.now())
    const say = (_details: object, message: string) => void this.said.push(message)
    const complain = (details: object, message: string) => {
      const reason = 'err' in details && details.err instanceof Error ? details.err.message : ''
      this.errors.push(`${message}: ${reason}`)
    }
    this.log = { debug: say, info: say, warn: say, error: complain }
  }

  static async open(kind: StoreKind): Promise<FaultBench> {
    const store = await kind.fresh()
    const outbox = await OutboxStore.open({ name: kind.name, fresh: async () => store })
    return new FaultBench(outbox, store)
  }

  dispatcher(
    transport: DispatcherOptions['transport'],
    options: Partial<DispatcherOptions> = {},
  ): RunningDispatcher {
    const { clock, log } = this
    const made = createDispatcher({ url: this.outbox.url, transport, clock, log, jitter: 0, ...options })
    let stopped: Promise<void> | undefined
    const once = { ...made, stop: () => (stopped ??= made.stop()) }
    this.#running.push(once)
    return once
  }

  /** Rows that match a condition. */
  async count(condition: string): Promise<number> {
    const [row] = await this.outbox.query(`SELECT count(*) AS n FROM outbox_messages WHERE ${condition}`)
    return Number(row?.n)
  }

  /** Waits until so many rows match. */
  async until(condition: string, count: number): Promise<void> {
    await expect.poll(() => this.count(condition), { interval: 20, message: condition }).toBe(count)
  }

  /** Many rows in one statement. */
  async fill(count: number, line: (n: string) => string = () => 'NULL'): Promise<void> {
    const each =
      this.outbox.dialect === 'postgres'
        ? `SELECT n FROM generate_series(1, ${count}) AS n`
        : `WITH RECURSIVE each (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < ${count}) SELECT n FROM each`
    const payload = this.outbox.dialect === 'postgres' ? `'{}'::bytea` : `CAST('{}' AS BLOB)`
    await this.outbox.query(
      `INSERT INTO outbox_messages (tenant_id, event_type, payload, ordering_key)
       SELECT 't', 'created', ${payload}, ${line('n')} FROM (${each}) AS each`,
    )
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((dispatcher) => dispatcher.stop()))
    await this.outbox.close()
  }
}

export const textOf = ({ payload }: OutboxMessage): string => Buffer.from(payload).toString()

/** Deliveries that wait until they are let through. */
export class Gate {
  readonly waiting = new Map<string, PromiseWithResolvers<void>>()
  /** Everything that was begun, in order. */
  readonly begun: string[] = []
  #isOpen = false

  /** A transport: begins, waits, succeeds. */
  readonly deliver = async (message: OutboxMessage): Promise<void> => {
    const text = textOf(message)
    this.begun.push(text)
    if (this.#isOpen) return
    const wait = Promise.withResolvers<void>()
    this.waiting.set(text, wait)
    await wait.promise
  }

  async untilBegun(count: number): Promise<void> {
    await expect.poll(() => this.begun.length, { interval: 5 }).toBe(count)
  }

  letThrough(text: string): void {
    this.waiting.get(text)?.resolve()
  }

  open(): void {
    this.#isOpen = true
    for (const { resolve } of this.waiting.values()) resolve()
  }
}
