/** The calls of the webhook API that are measured, over kept connections. Everything that is not a success throws. */
import { errors, Pool } from 'undici'
import { payload } from '../system.ts'
import { messageId } from './message-id.ts'

/** Tokens of channels, consumers and the producer alike. */
const TOKEN = 'bench-token'
const PRODUCER = 'bench'

export interface DeadCount {
  readonly channelId: string
  readonly consumerId: string
  readonly deadCount: number
}

/** A status of `/job-status`, of one consumer. */
interface StatusCount {
  readonly status: number
  readonly count: number
  readonly consumerId: string
}

export class Broker {
  readonly #pool: Pool

  constructor(url: string, connections = 64) {
    // A purge answers when it is done, and that may take many minutes.
    this.#pool = new Pool(url, { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
  }

  /** The one who sends, unless the store has it from a server before. */
  async putProducer(): Promise<void> {
    const { Result: producers }: { Result: readonly string[] } = JSON.parse(await this.get('/producers'))
    if (!producers.includes(`/producer/${PRODUCER}`)) await this.#put(`/producer/${PRODUCER}`, {})
  }

  async putChannel(channel: string): Promise<void> {
    await this.#put(`/channel/${channel}`, {})
  }

  async putConsumer(
    channel: string,
    consumer: string,
    type: 'push' | 'pull',
    callbackUrl = 'http://127.0.0.1:9/',
  ) {
    await this.#put(`/channel/${channel}/consumer/${consumer}`, { callbackUrl, type })
  }

  /** Sends message `n`; resolves with its answer. */
  async broadcast(channel: string, n: number): Promise<void> {
    const headers = {
      'content-type': 'application/json',
      'x-broker-channel-token': TOKEN,
      'x-broker-producer-id': PRODUCER,
      'x-broker-producer-token': TOKEN,
      'x-broker-message-id': messageId(n),
    }
    await this.#call('POST', `/channel/${channel}/broadcast`, 201, headers, JSON.stringify(payload(n)))
  }

  async get(path: string): Promise<string> {
    return this.#call('GET', path, 200, {})
  }

  async deadCounts(): Promise<readonly DeadCount[]> {
    const { consumers }: { consumers: readonly DeadCount[] } = JSON.parse(await this.get('/dlq-status'))
    return consumers
  }

  /** Jobs of a channel that are queued or in flight. */
  async waiting(channel: string): Promise<number> {
    const status: Readonly<Record<string, Readonly<Record<string, readonly StatusCount[]>>>> = JSON.parse(
      await this.get('/job-status'),
    )
    return Object.values(status[channel] ?? {})
      .flat()
      .filter((entry) => entry.status < 1003)
      .reduce((sum, { count }) => sum + count, 0)
  }

  /** Deletes all dead jobs of a consumer; gives how many there were, or null when the connection ended before the answer. */
  async purge(channel: string, consumer: string): Promise<number | null> {
    const headers = { 'x-broker-channel-token': TOKEN, 'x-broker-consumer-token': TOKEN }
    const path = `/channel/${channel}/consumer/${consumer}/dlq`
    try {
      return Number(JSON.parse(await this.#call('DELETE', path, 200, headers)).deletedCount)
    } catch (error) {
      if (error instanceof errors.SocketError) return null
      throw error
    }
  }

  /** Puts all dead jobs of a consumer back into its queue. They may be on the way when this is answered. */
  async requeue(channel: string, consumer: string): Promise<void> {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await this.#call('POST', `/channel/${channel}/consumer/${consumer}/dlq`, 202, form, `requeue=${TOKEN}`)
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  async #put(path: string, fields: Readonly<Record<string, string>>): Promise<void> {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await this.#call('PUT', path, 200, form, new URLSearchParams({ token: TOKEN, ...fields }).toString())
  }

  async #call(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    expected: number,
    headers: Readonly<Record<string, string>>,
    body: string | null = null,
  ): Promise<string> {
    const answer = await this.#pool.request({ method, path, headers, body })
    const text = await answer.body.text()
    if (answer.statusCode !== expected)
      throw new Error(`${method} ${path} was answered ${answer.statusCode}: ${text.slice(0, 200)}`)
    return text
  }
}
