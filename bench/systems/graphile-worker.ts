/**
 * graphile-worker in its best settings: `addJobs` of 1,000, a local queue of 500, results written in batches.
 * For latency the local queue is off, because it delays single jobs. Its dead letters are jobs that stay in the
 * table with all attempts used.
 */
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { type Consumption, lastFailure, type Payload, type Surroundings, type System } from '../system.ts'

const task = 'bench'

export async function open({ postgresUrl, aim }: Surroundings): Promise<System> {
  const pgPool = new pg.Pool({ connectionString: postgresUrl, max: 25 })
  const logger = new Logger(() => () => {})
  const producer = await makeWorkerUtils({ pgPool, logger })
  await producer.migrate()
  const observer = new pg.Pool({ connectionString: postgresUrl, max: 1 })

  return {
    batchesInFlight: 4,
    processIds: [],
    async enqueueBatch(payloads: readonly Payload[]) {
      await producer.addJobs(payloads.map((payload) => ({ identifier: task, payload, maxAttempts: 1 })))
    },
    async enqueueOne(payload: Payload) {
      await producer.addJob(task, payload, { maxAttempts: 1 })
    },
    async consume({ seen, ending }: Consumption) {
      const runner = await run({
        pgPool,
        logger,
        noHandleSignals: true,
        taskList: {
          [task]: async (received) => {
            // Task payloads are untyped in graphile-worker; this queue holds only ours.
            seen((received as Payload).n)
            if (ending === 'fail') throw lastFailure
          },
        },
        preset: {
          worker: {
            concurrentJobs: 24,
            maxPoolSize: 25,
            ...(aim === 'latency'
              ? { localQueue: { size: -1 } }
              : { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
          },
        },
      })
      return { stop: () => runner.stop() }
    },
    async counts() {
      const { rows } = await observer.query<{ waiting: number; dead: number }>(
        `SELECT count(*) FILTER (WHERE attempts < max_attempts OR locked_at IS NOT NULL)::int AS waiting,
                count(*) FILTER (WHERE attempts >= max_attempts AND locked_at IS NULL)::int AS dead
           FROM graphile_worker.jobs`,
      )
      return rows[0] ?? { waiting: 0, dead: 0 }
    },
    async close() {
      await producer.release()
      await observer.end()
      await pgPool.end()
    },
  }
}
