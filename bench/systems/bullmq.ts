/**
 * BullMQ in its best settings: `addBulk` of 1,000, four workers of concurrency 100, finished jobs removed.
 * Redis writes its append-only file once a second, so a crash may lose the last second: less than the others promise.
 */
import { Queue, Worker } from 'bullmq'
import { type Consumption, lastFailure, type Payload, type Surroundings, type System } from '../system.ts'

const queueName = 'bench'

export async function open({ redisPort }: Surroundings): Promise<System> {
  const connection = { host: '127.0.0.1', port: redisPort, maxRetriesPerRequest: null }
  const queue = new Queue<Payload>(queueName, {
    connection,
    defaultJobOptions: { attempts: 1, removeOnComplete: true },
  })
  await queue.waitUntilReady()

  return {
    batchesInFlight: 4,
    processIds: [],
    async enqueueBatch(payloads: readonly Payload[]) {
      await queue.addBulk(payloads.map((data) => ({ name: 'item', data })))
    },
    async enqueueOne(payload: Payload) {
      await queue.add('item', payload)
    },
    async consume({ seen, ending }: Consumption) {
      const workers = Array.from(
        { length: 4 },
        () =>
          new Worker<Payload>(
            queueName,
            async (job) => {
              seen(job.data.n)
              if (ending === 'fail') throw lastFailure
            },
            { connection, concurrency: 100, removeOnComplete: { count: 0 } },
          ),
      )
      await Promise.all(workers.map((worker) => worker.waitUntilReady()))
      return {
        async stop() {
          await Promise.all(workers.map((worker) => worker.close()))
        },
      }
    },
    async counts() {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized', 'failed')
      const { failed = 0, ...open } = counts
      return { waiting: Object.values(open).reduce((sum, count) => sum + count, 0), dead: failed }
    },
    close: () => queue.close(),
  }
}
