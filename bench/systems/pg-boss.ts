/**
 * pg-boss in its best settings: `insert` of 1,000, four workers that fetch 500 and fetch again at once while
 * batches come back full. For latency it listens to notifications, which would only cost in the other runs.
 */
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { type Consumption, lastFailure, type Payload, type Surroundings, type System } from '../system.ts'

const queue = 'bench'
const deadQueue = 'bench-dead'

export async function open({ postgresUrl, aim }: Surroundings): Promise<System> {
  const forLatency = aim === 'latency'
  const boss = new PgBoss({
    connectionString: postgresUrl,
    max: 20,
    schedule: false,
    useListenNotify: forLatency,
  })
  boss.on('error', (error) => {
    throw error
  })
  await boss.start()
  await boss.createQueue(deadQueue)
  await boss.createQueue(queue, { retryLimit: 0, deadLetter: deadQueue, notify: forLatency })
  const observer = new pg.Pool({ connectionString: postgresUrl, max: 1 })

  return {
    batchesInFlight: 4,
    processIds: [],
    async enqueueBatch(payloads: readonly Payload[]) {
      await boss.insert(
        queue,
        payloads.map((data) => ({ data })),
      )
    },
    async enqueueOne(payload: Payload) {
      await boss.send(queue, payload)
    },
    async consume({ seen, ending }: Consumption) {
      await boss.work<Payload>(
        queue,
        forLatency
          ? { localConcurrency: 4, pollingIntervalSeconds: 0.5 }
          : { batchSize: 500, localConcurrency: 4, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
        async (jobs) => {
          for (const job of jobs) seen(job.data.n)
          if (ending === 'fail') throw lastFailure
        },
      )
      return { stop: () => boss.offWork(queue, { wait: true }) }
    },
    async counts() {
      const { rows } = await observer.query<{ waiting: number; dead: number }>(
        `SELECT count(*) FILTER (WHERE name = $1 AND state < 'completed')::int AS waiting,
                count(*) FILTER (WHERE name = $2)::int AS dead
           FROM pgboss.job WHERE name IN ($1, $2)`,
        [queue, deadQueue],
      )
      return rows[0] ?? { waiting: 0, dead: 0 }
    },
    async close() {
      await observer.end()
      await boss.stop({ graceful: true, timeout: 30_000 })
    },
  }
}
