/**
 * A server with webhooks on a store of its own, a client, and a receiver for its callbacks. Its clock stands still unless a test
 * lets time pass, which is done in small steps: no step is taken while an attempt is being made, so that a slow machine never
 * makes a deadline pass that a test did not want to pass.
 */
import { expect } from 'vitest'
import { type Clock, type Instant, instant } from '../../../src/core/clock.ts'
import type { Office } from '../../../src/office.ts'
import type { WebhookSettings } from '../../../src/sources/webhooks/settings.ts'
import { PATIENCE_MS } from '../limits.ts'
import { Receiver } from '../receiver.ts'
import { type DeepPartial, type ServerHere, type ServerOptions, startServer } from '../server.ts'
import type { FreshStore, StoreKind } from '../stores.ts'
import { rfc3339, systemNow } from '../time.ts'
import { type Headers, type WebhookAnswer, WebhookClient } from './client.ts'

/** Settings under which nothing takes long: those of the conformance profile. */
export const QUICK: DeepPartial<WebhookSettings> = {
  delivery: {
    backoffSeconds: [1],
    rationalDelaySeconds: 1,
    maxRetry: 5,
    timeoutSeconds: 10,
    workers: 250,
    breaker: { failures: 0 },
  },
}

export interface BrokerOptions extends Omit<ServerOptions, 'store'> {
  /** Another broker whose store this one shares. */
  readonly beside?: Broker
  /** Its clock goes on by itself; left out, it stands still. */
  readonly liveClock?: boolean
}

/** So long must the store have been left alone to be at rest, and so many questions long: a busy machine takes its time. */
const QUIET_MS = 8
const QUIET_PINGS = 4
const STEP_SECONDS = 0.25

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

export class Broker {
  readonly client: WebhookClient
  readonly receiver: Receiver
  readonly office: Office
  readonly place: FreshStore
  readonly kind: StoreKind
  /** The settings that it was given. */
  readonly webhooks: DeepPartial<WebhookSettings>
  readonly #server: ServerHere
  /** All that share the store and the clock, the first of them first. */
  readonly #all: Broker[]
  #touchedAt = performance.now()

  private constructor(
    kind: StoreKind,
    options: BrokerOptions,
    server: ServerHere,
    place: FreshStore,
    receiver: Receiver,
  ) {
    const { beside, webhooks = {} } = options
    this.kind = kind
    this.webhooks = webhooks
    this.#server = server
    this.office = server.office
    this.client = new WebhookClient(server.url)
    this.place = place
    this.receiver = receiver
    this.#all = beside === undefined ? [] : beside.#all
    this.#all.push(this)
    server.office.onStoreCall(({ verb }) => {
      if (verb !== 'ping') this.#touchedAt = performance.now()
    })
  }

  /** A broker on an empty store, or on that of another one; its clock stands at the present. */
  static async start(kind: StoreKind, options: BrokerOptions = {}): Promise<Broker> {
    const { beside, liveClock = false, ...serverOptions } = options
    const place = beside?.place ?? (await kind.fresh())
    const server = await startServer({
      ...serverOptions,
      ...(beside === undefined ? {} : { clock: beside.clock }),
      store: place.url,
    })
    const receiver = beside?.receiver ?? (await Receiver.start())
    const broker = new Broker(kind, options, server, place, receiver)
    if (beside === undefined) {
      receiver.now = () => server.office.clock.now()
      if (!liveClock) await broker.freeze(systemNow())
    }
    return broker
  }

  get clock(): Clock {
    return this.office.clock
  }

  get now(): Instant {
    return this.clock.now()
  }

  /** The RFC 3339 text of so many seconds from now. */
  at(seconds: number): string {
    return rfc3339(this.now + BigInt(Math.round(seconds * 1e6)))
  }

  freeze(at: bigint): Promise<void> {
    return this.office.freezeClock(instant(at))
  }

  /** Lets what is under way come to its end. */
  async settle(): Promise<void> {
    const limit = performance.now() + PATIENCE_MS
    while (!(await this.#rests())) {
      if (performance.now() > limit) expect.fail('the server does not come to rest')
    }
  }

  /** Waits for what needs no time to pass; then for all else that is under way. */
  async eventually(holds: () => void | Promise<void>): Promise<void> {
    const limit = performance.now() + PATIENCE_MS
    for (;;) {
      await this.settle()
      try {
        return await holds()
      } catch (error) {
        if (performance.now() > limit) throw error
      }
    }
  }

  /** Lets so much time pass, in steps. */
  async pass(seconds: number, stepSeconds = STEP_SECONDS): Promise<void> {
    for (let left = seconds; left > 1e-9; left -= stepSeconds) await this.jump(Math.min(left, stepSeconds))
  }

  /** Lets time pass at once: what would have happened on the way happens at its end. */
  async jump(seconds: number): Promise<void> {
    await this.office.advanceClock(BigInt(Math.round(seconds * 1e6)))
    await this.settle()
  }

  /** Lets time pass until `holds` no longer throws, and so much of it at most. */
  async within(
    seconds: number,
    holds: () => void | Promise<void>,
    stepSeconds = STEP_SECONDS,
  ): Promise<void> {
    await this.settle()
    for (let left = Math.ceil(seconds / stepSeconds); ; left--) {
      try {
        return await holds()
      } catch (error) {
        if (left <= 0) throw error
      }
      await this.jump(stepSeconds)
    }
  }

  /** Stops it; the last one of a store disposes of that too. */
  async stop(): Promise<void> {
    this.client.close()
    await this.#server.stop()
    this.#all.splice(this.#all.indexOf(this), 1)
    if (this.#all.length > 0) return
    await this.receiver.close()
    await this.place.dispose()
  }

  /** Whether nothing is under way, here and at those that share the store. */
  async #rests(): Promise<boolean> {
    const startedAt = performance.now()
    for (let ping = 0; ping < QUIET_PINGS || performance.now() < startedAt + QUIET_MS; ping++) {
      if (this.#all.some((broker) => broker.#isBusy(startedAt))) {
        await sleep(2)
        return false
      }
      await this.office.ping()
      await sleep(1)
    }
    return true
  }

  #isBusy(since: number): boolean {
    return this.receiver.open > 0 || this.office.webhooks.courier.held > 0 || this.#touchedAt > since
  }
}

/** An answer of this status; anything else fails with what was answered. */
export async function expectStatus(status: number, answer: Promise<WebhookAnswer>): Promise<WebhookAnswer> {
  const given = await answer
  expect(`${given.status} ${given.status === status ? '' : given.text}`.trim()).toBe(String(status))
  return given
}

/** The answer is this refusal: its status, its text and the form of all refusals. */
export async function expectRefusal(
  status: number,
  text: string,
  answer: Promise<WebhookAnswer>,
): Promise<void> {
  const given = await answer
  expect({ status: given.status, text: given.text, type: given.headers['content-type'] }).toEqual({
    status,
    text,
    type: 'text/plain; charset=utf-8',
  })
}

export type { Headers }
