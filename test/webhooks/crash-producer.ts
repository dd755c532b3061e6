/**
 * A producer that never gives up: a broadcast whose answer was lost is repeated with the same id, at any server that is there, until it
 * is accepted, or was before.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../world/random.ts'
import { rfc3339, seconds, systemNow } from '../world/time.ts'
import { type Headers, type WebhookAnswer, WebhookClient } from '../world/webhooks/client.ts'
import { CONSUMERS, payloadOf } from './crash-recorder.ts'

const CHANNEL = 'orders'
const SENDERS = 8
/** One in so many messages is to go out some seconds later. */
const SCHEDULED_EACH = 20
const HEADERS = {
  'X-Broker-Channel-Token': 'ctok',
  'X-Broker-Producer-ID': 'shop',
  'X-Broker-Producer-Token': 'ptok',
  'Content-Type': 'application/octet-stream',
}

export class Producer {
  /** The ids of messages that were accepted for certain. */
  readonly accepted: string[] = []
  /** Answers that never came. */
  lost = 0
  /** What must never be answered. */
  readonly violations: string[] = []
  readonly #urls: () => readonly string[]
  readonly #random: Random
  readonly #clients = new Map<string, WebhookClient>()

  /** `urls` are the servers that are there at the moment. */
  constructor(urls: () => readonly string[], random: Random) {
    this.#urls = urls
    this.#random = random
  }

  /** Registers itself, the channel and its consumers, whose URLs lie below this one. */
  async register(callbacks: string): Promise<void> {
    const client = this.#client()
    const answers = [
      await client.put('/producer/shop', { token: 'ptok' }),
      await client.put(`/channel/${CHANNEL}`, { token: 'ctok' }),
    ]
    for (const consumer of CONSUMERS) {
      const form = { token: 'ktok', callbackUrl: `${callbacks}/${consumer}` }
      answers.push(await client.put(`/channel/${CHANNEL}/consumer/${consumer}`, form))
    }
    for (const { status, text } of answers) if (status !== 200) this.violations.push(`${status} ${text}`)
  }

  /** Sends these messages, several at a time. */
  async broadcast(ids: readonly string[]): Promise<void> {
    const left = [...ids].reverse()
    const send = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await this.#send(id)
    }
    await Promise.all(Array.from({ length: SENDERS }, send))
  }

  get(path: string): Promise<readonly WebhookAnswer[]> {
    return Promise.all(this.#urls().map((url) => this.#client(url).get(path)))
  }

  close(): void {
    for (const client of this.#clients.values()) client.close()
  }

  async #send(id: string): Promise<void> {
    const isForLater = this.#random.whole(1, SCHEDULED_EACH) === 1
    for (let lost = 0; ; ) {
      const schedule = isForLater ? this.#schedule() : {}
      const headers = { ...HEADERS, 'X-Broker-Message-ID': id, ...schedule }
      const answer = await this.#client()
        .post(`/channel/${CHANNEL}/broadcast`, payloadOf(id), headers)
        // Its server was killed.
        .catch(() => null)
      if (answer === null) {
        lost += 1
        this.lost += 1
        await pause(5)
        continue
      }
      const { status, text } = answer
      // It took so long to get there that its time had come.
      if (status === 412 && isForLater) continue
      if (status === 201 || (status === 409 && lost > 0)) this.accepted.push(id)
      else this.violations.push(`${id}: ${status} ${text}`)
      return
    }
  }

  #schedule(): Headers {
    return { 'X-Broker-Scheduled-For': rfc3339(systemNow() + seconds(this.#random.whole(2, 4))) }
  }

  #client(url = this.#anyUrl()): WebhookClient {
    const client = this.#clients.get(url) ?? new WebhookClient(url)
    this.#clients.set(url, client)
    return client
  }

  #anyUrl(): string {
    const urls = this.#urls()
    return urls[this.#random.whole(0, urls.length - 1)] ?? 'http://127.0.0.1:9'
  }
}
