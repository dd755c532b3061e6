/**
 * Bartleby as a system under test. The library and the HTTP client have the same verbs, so one adapter drives
 * both: four loops that lease, look at the items, and complete them while the next lease is under way.
 */
import type { Consumption, Payload, System } from '../system.ts'

const queueName = 'bench'
const deadQueue = 'bench-dead'
const loops = 4
const leaseSize = 500

interface Settings {
  readonly queueName: string
  readonly leaseTimeout: string
  readonly expireTimeout: string
  readonly requestedPartitions: number
  readonly maxAttempts?: number
  readonly deadQueue?: string
}

interface LeasedItem {
  readonly id: string
  readonly payload: Uint8Array
}

/** The verbs that the benchmark needs of the library's `Queues` and of the client's `QueueClient`. */
export interface QueueVerbs {
  produce(request: { queueName: string; items: readonly { payload: string }[] }): Promise<unknown>
  lease(queueName: string, clientId: string, batchSize: number, signal: AbortSignal): Promise<LeasedBatch>
  complete(request: { queueName: string; partition: number; ids: readonly string[] }): Promise<void>
  retry(request: { queueName: string; partition: number; items: readonly { id: string }[] }): Promise<void>
  create(settings: Settings): Promise<unknown>
  stats(queueName: string): Promise<{ readonly partitions: readonly { total: number; scheduled: number }[] }>
}

export interface LeasedBatch {
  readonly partition: number
  readonly items: readonly LeasedItem[]
}

/** Creates the queue and its dead queue; `close` is what the store or server behind the verbs needs. */
export async function leasingSystem(
  queues: QueueVerbs,
  processIds: readonly number[],
  close: () => Promise<void>,
): Promise<System> {
  const settings = { leaseTimeout: '5m', expireTimeout: '24h', requestedPartitions: 1 }
  await queues.create({ ...settings, queueName: deadQueue })
  await queues.create({ ...settings, queueName, deadQueue, maxAttempts: 1 })
  const items = (payloads: readonly Payload[]) =>
    payloads.map((payload) => ({ payload: JSON.stringify(payload) }))

  async function total(name: string): Promise<number> {
    const { partitions } = await queues.stats(name)
    return partitions.reduce((sum, { total, scheduled }) => sum + total + scheduled, 0)
  }

  return {
    batchesInFlight: 4,
    processIds,
    async enqueueBatch(payloads: readonly Payload[]) {
      await queues.produce({ queueName, items: items(payloads) })
    },
    async enqueueOne(payload: Payload) {
      await queues.produce({ queueName, items: items([payload]) })
    },
    async consume({ seen, ending }: Consumption) {
      const stopping = new AbortController()
      const decoder = new TextDecoder()

      async function settle({ partition, items }: LeasedBatch): Promise<void> {
        const ids = items.map((item) => item.id)
        if (ending === 'complete') await queues.complete({ queueName, partition, ids })
        else await queues.retry({ queueName, partition, items: ids.map((id) => ({ id })) })
      }

      async function loop(clientId: string): Promise<void> {
        let settling = Promise.resolve()
        while (!stopping.signal.aborted) {
          const batch = await queues.lease(queueName, clientId, leaseSize, stopping.signal).catch((error) => {
            if (stopping.signal.aborted) return null
            throw error
          })
          if (batch === null) break
          for (const item of batch.items) seen(JSON.parse(decoder.decode(item.payload)).n)
          await settling
          settling = settle(batch)
        }
        await settling
      }

      const running = Promise.all(Array.from({ length: loops }, (_, at) => loop(`loop-${at}`)))
      return {
        async stop() {
          stopping.abort()
          await running
        },
      }
    },
    counts: async () => ({ waiting: await total(queueName), dead: await total(deadQueue) }),
    close,
  }
}
