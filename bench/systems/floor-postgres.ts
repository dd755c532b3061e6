/**
 * The floor on PostgreSQL: the least SQL that can be called a durable queue, through plain node-postgres.
 * It has leases but nothing that ends them, no schedules, no expiry, no history and no counts.
 */
import pg from 'pg'
import type { Consumption, Payload, Surroundings, System } from '../system.ts'

const claimSize = 500
const loops = 4
/** Claims start at the last claimed ids, beyond the dead rows; this often, and when short, at the very beginning. */
const sweepEveryMs = 2_000
const idleMs = 2

// Narrow rows, one index, and room on the page, so that a claim is a heap-only update.
const schema = `
  CREATE TABLE item (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lease_deadline timestamptz, attempts int NOT NULL DEFAULT 0, payload text NOT NULL
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
  CREATE TABLE dead (id bigint PRIMARY KEY, attempts int NOT NULL, payload text NOT NULL)`

const insertBatch = {
  name: 'insert-batch',
  text: 'INSERT INTO item (payload) SELECT * FROM unnest($1::text[])',
}
const insertOne = { name: 'insert-one', text: 'INSERT INTO item (payload) VALUES ($1)' }
const claim = {
  name: 'claim',
  text: `WITH picked AS MATERIALIZED (
           SELECT id FROM item WHERE id >= $1 AND lease_deadline IS NULL ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
         UPDATE item SET lease_deadline = now() + interval '1 minute', attempts = attempts + 1
           FROM picked WHERE item.id = picked.id RETURNING item.id, item.payload`,
}
const complete = { name: 'complete', text: 'DELETE FROM item WHERE id = ANY($1::bigint[])' }
const bury = {
  name: 'bury',
  text: `WITH gone AS (DELETE FROM item WHERE id = ANY($1::bigint[]) RETURNING id, attempts, payload)
         INSERT INTO dead SELECT id, attempts, payload FROM gone`,
}

export async function open({ postgresUrl }: Surroundings): Promise<System> {
  const pool = new pg.Pool({ connectionString: postgresUrl, max: 16 })
  await pool.query(schema)
  let watermark = 0
  let sweptAt = performance.now()
  let lastWasFull = false

  async function claimBatch(): Promise<readonly { id: string; payload: string }[]> {
    const sweep = !lastWasFull || performance.now() - sweptAt > sweepEveryMs
    if (sweep) sweptAt = performance.now()
    const { rows } = await pool.query({ ...claim, values: [sweep ? 0 : watermark, claimSize] })
    const lowest = rows.reduce((least, row) => Math.min(least, Number(row.id)), Number.POSITIVE_INFINITY)
    lastWasFull = rows.length === claimSize
    if (lastWasFull && !sweep) watermark = Math.max(watermark, lowest)
    return rows
  }

  return {
    batchesInFlight: 4,
    processIds: [],
    async enqueueBatch(payloads: readonly Payload[]) {
      await pool.query({ ...insertBatch, values: [payloads.map((payload) => JSON.stringify(payload))] })
    },
    async enqueueOne(payload: Payload) {
      await pool.query({ ...insertOne, values: [JSON.stringify(payload)] })
    },
    async consume({ seen, ending }: Consumption) {
      const stopping = new AbortController()
      const settle = ending === 'complete' ? complete : bury
      async function loop(): Promise<void> {
        while (!stopping.signal.aborted) {
          const rows = await claimBatch()
          if (rows.length === 0) {
            await new Promise((resolve) => setTimeout(resolve, idleMs))
            continue
          }
          for (const row of rows) seen(JSON.parse(row.payload).n)
          await pool.query({ ...settle, values: [rows.map((row) => row.id)] })
        }
      }
      const running = Promise.all(Array.from({ length: loops }, loop))
      return {
        async stop() {
          stopping.abort()
          await running
        },
      }
    },
    async counts() {
      const { rows } = await pool.query<{ waiting: number; dead: number }>(
        'SELECT (SELECT count(*)::int FROM item) AS waiting, (SELECT count(*)::int FROM dead) AS dead',
      )
      return rows[0] ?? { waiting: 0, dead: 0 }
    },
    close: () => pool.end(),
  }
}
