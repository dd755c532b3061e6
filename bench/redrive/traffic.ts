/** Live traffic in a closed loop: callers that produce items, lease as many and complete them, without a pause. */
import type { Office } from '../../src/index.ts'
import { timesOf } from '../figures.ts'
import { payload } from '../system.ts'
import type { Traffic } from './task.ts'

const CALLERS = 4
const ITEMS = 10
const queueName = 'live'

export class LiveTraffic {
  readonly #queues: Office['queues']
  readonly #tookMs: number[] = []
  #completed = 0
  #ms = 0

  constructor({ queues }: Office) {
    this.#queues = queues
  }

  static async createQueue({ queues }: Office): Promise<void> {
    const settings = { leaseTimeout: '5m', expireTimeout: '24h', requestedPartitions: 1 }
    await queues.create({ ...settings, queueName })
  }

  /** Goes on for so many seconds. When it ends nothing is left in the queue. */
  async run(seconds: number): Promise<void> {
    const startMs = performance.now()
    const endMs = startMs + seconds * 1000
    await Promise.all(Array.from({ length: CALLERS }, (_, at) => this.#loop(`caller-${at}`, endMs)))
    this.#ms += performance.now() - startMs
  }

  /** Of all that went on so far. */
  get figures(): Traffic {
    return { itemsPerSecond: (this.#completed * 1000) / this.#ms, ...timesOf(this.#tookMs) }
  }

  async #loop(clientId: string, endMs: number): Promise<void> {
    const queues = this.#queues
    for (let n = 0; performance.now() < endMs; n++) {
      const items = Array.from({ length: ITEMS }, (_, at) => ({
        payload: JSON.stringify(payload(n * ITEMS + at)),
      }))
      await this.#timed(() => queues.produce({ queueName, items }))
      // Everybody leases as many as they produced: there is enough for all.
      for (let left = ITEMS; left > 0; ) {
        const batchSize = left
        const leased = await this.#timed(() => queues.lease({ queueName, clientId, batchSize }))
        const { partition } = leased
        const ids = leased.items.map(({ id }) => id)
        await this.#timed(() => queues.complete({ queueName, partition, ids }))
        left -= ids.length
        this.#completed += ids.length
      }
    }
  }

  async #timed<T>(call: () => Promise<T>): Promise<T> {
    const startMs = performance.now()
    const answer = await call()
    this.#tookMs.push(performance.now() - startMs)
    return answer
  }
}
