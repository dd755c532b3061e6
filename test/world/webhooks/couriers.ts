/** One channel, `orders`, with consumers and jobs, and couriers that deliver from their store. Its clock stands still. */
import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { microseconds } from '../../../src/core/clock.ts'
import { newRegisters } from '../../../src/letters/registers.ts'
import { Courier } from '../../../src/sources/webhooks/courier/courier.ts'
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../../../src/sources/webhooks/settings.ts'
import type { Channel, Consumer, ConsumerType, JobState } from '../../../src/sources/webhooks/webhook.ts'
import { Announcer } from '../../../src/store/announcer.ts'
import type { Database, Integer } from '../../../src/store/database.ts'
import { type Received, Receiver } from '../receiver.ts'
import { migrated, SOON } from '../store-world.ts'
import type { StoreKind } from '../stores.ts'
import { changeConsumer, ERASE, type JobRow, readAttempts, readLetters, readPause } from './rows.ts'
import { type ConsumerDraft, WebhookWorld } from './world.ts'

export type DeliverySettings = Partial<WebhookSettings['delivery']>

export class Depot extends WebhookWorld {
  readonly #couriers: Courier[] = []
  readonly #announcers: Announcer[] = []
  readonly #receivers: Receiver[] = []
  #orders: Channel | null = null

  static override async open(kind: StoreKind): Promise<Depot> {
    const depot = await migrated(new Depot(await kind.fresh()))
    depot.#orders = await depot.channel('orders')
    return depot
  }

  override async close(): Promise<void> {
    await this.clear()
    await super.close()
  }

  /** Ends what a test has begun, and leaves nothing of it. */
  async clear(): Promise<void> {
    await Promise.all(this.#couriers.splice(0).map((courier) => courier.stop(0)))
    for (const announcer of this.#announcers.splice(0)) announcer.stop()
    await Promise.all(this.#receivers.splice(0).map((receiver) => receiver.close()))
    this.log.lines.length = 0
    await this.db.transaction('test', async (tx) => {
      for (const statement of ERASE) await tx.run(statement)
    })
  }

  /** A receiver of callbacks. */
  async receiver(answer: (response: ServerResponse, request: Received) => void = ok): Promise<Receiver> {
    const receiver = await Receiver.start(answer)
    this.#receivers.push(receiver)
    return receiver
  }

  /** A new consumer of the channel. */
  subscriber(draft: ConsumerDraft = {}): Promise<Consumer> {
    return this.consumer(this.#orders ?? expect.fail('the depot is not open'), draft)
  }

  async change(consumer: Consumer, type: ConsumerType, url: string): Promise<void> {
    await this.write(changeConsumer, consumer.number, type === 'pull' ? 1 : 0, url)
  }

  /** A courier that has begun to deliver; `another`: as another server has it; `db`: what it has instead of the store. */
  courier(
    delivery: DeliverySettings = {},
    options: { another?: boolean; recovery?: boolean; db?: Database } = {},
  ): Courier {
    const { another = false, recovery = true } = options
    const { clock, log } = this
    const db = options.db ?? (another ? this.another() : this.db)
    const defaults = DEFAULT_WEBHOOK_SETTINGS
    const settings: WebhookSettings = {
      ...defaults,
      delivery: { ...defaults.delivery, breaker: { ...defaults.delivery.breaker, failures: 0 }, ...delivery },
      recovery: { enabled: recovery },
    }
    const registers = another ? newRegisters() : this.registers
    const announcer = new Announcer(db, log)
    void announcer.start()
    this.#announcers.push(announcer)
    const courier = new Courier({ db, clock, log, registers, settings, announcer })
    this.#couriers.push(courier)
    courier.start()
    return courier
  }

  /** Lets time pass in steps; what becomes due is done between them. */
  async passInSteps(seconds: number, step = 1): Promise<void> {
    for (let left = seconds; left > 0; left -= step) {
      this.clock.advance(microseconds(Math.min(step, left)))
      await this.rest()
    }
  }

  /** Lets time pass until it is so. */
  async passUntil(isSo: () => boolean | Promise<boolean>, step = 0.5): Promise<void> {
    for (let steps = 0; !(await isSo()); steps++) {
      if (steps === 500) expect.fail('it is not so, however much time passes')
      await this.passInSteps(step, step)
    }
  }

  /** A moment in which what is due can be done. */
  async rest(): Promise<void> {
    for (let i = 0; i < 4; i++) await this.jobRows()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }

  /** Waits until all jobs are in these states, in the order of their ids. */
  async until(...states: readonly JobState[]): Promise<readonly JobRow[]> {
    const read = async () => (await this.jobRows()).map(({ state }) => state)
    await expect.poll(read, SOON).toEqual(states)
    return this.jobRows()
  }

  /** The failures of all attempts. */
  async failures(): Promise<readonly string[]> {
    const rows = await this.read<{ error_class: string; error_message: string }>(readAttempts)
    return rows.map(({ error_class, error_message }) => `${error_class}: ${error_message}`)
  }

  letterRows(): Promise<readonly Record<string, unknown>[]> {
    return this.read<Record<string, unknown>>(readLetters)
  }

  /** The pause of a consumer, which is no change of the consumer. */
  async pauseOf(
    consumer: Consumer,
  ): Promise<{ since: bigint; until: bigint; seconds: number; reason: string } | null> {
    const [row] = await this.read<Record<string, Integer | string | null>>(readPause, consumer.number)
    if (row === undefined) throw new Error('there is no such consumer')
    expect(BigInt(row.updated_at ?? 0)).toBe(consumer.updatedAt)
    const { paused_since, paused_until, pause_seconds, pause_reason } = row
    const fields = [paused_since, paused_until, pause_seconds, pause_reason]
    if (fields.every((field) => field == null)) return null
    return {
      since: BigInt(paused_since ?? 0),
      until: BigInt(paused_until ?? 0),
      seconds: Number(pause_seconds),
      reason: String(pause_reason),
    }
  }
}

const ok = (response: ServerResponse): void => void response.writeHead(200).end()
