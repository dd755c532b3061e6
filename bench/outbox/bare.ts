/**
 * The least SQL that can be called a dispatcher: claim a batch, deliver it, mark it processed, and again. The same table
 * and indexes as ours; no retries, no order of keys, no renewal, no settling of one batch while the next is claimed.
 */
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { TABLE } from './table.ts'

export interface BareRow {
  readonly id: string | number
  readonly payload: Uint8Array
  readonly idempotency_key: string
}

export interface BareLoop {
  /** Delivers until nothing is left; gives the number of messages. */
  run(deliver: (rows: readonly BareRow[]) => Promise<void>): Promise<number>
  close(): Promise<void>
}

const returned =
  'id, tenant_id, event_type, payload, idempotency_key, ordering_key, headers, correlation_id, created_at, retry_count'
const pending = 'processed_at IS NULL AND dead_at IS NULL'

export const openBareLoop = (store: string, batchSize: number): Promise<BareLoop> =>
  store.startsWith('sqlite:')
    ? openSqlite(store.slice('sqlite:'.length), batchSize)
    : openPostgres(store, batchSize)

async function openPostgres(url: string, batchSize: number): Promise<BareLoop> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const due = `(coalesce(claimed_until, next_attempt_at, '-infinity'::timestamptz))`
  const claim = {
    name: 'claim',
    text: `UPDATE ${TABLE} SET claimed_until = now() + interval '1 minute', claimed_by = 'bare', claim_count = claim_count + 1
      WHERE id = ANY(ARRAY(SELECT id FROM ${TABLE} WHERE ${pending} AND ${due} <= now()
        ORDER BY ${due}, created_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING ${returned}`,
    values: [batchSize],
  }
  const settle = {
    name: 'settle',
    text: `UPDATE ${TABLE} SET processed_at = now(), claimed_until = NULL, claimed_by = NULL, claim_count = 0
      WHERE id = ANY($1::bigint[]) AND claimed_by = 'bare'`,
  }
  return {
    async run(deliver) {
      for (let done = 0; ; ) {
        const { rows } = await client.query<BareRow>(claim)
        if (rows.length === 0) return done
        await deliver(rows)
        await client.query({ ...settle, values: [rows.map(({ id }) => id)] })
        done += rows.length
      }
    },
    close: () => client.end(),
  }
}

async function openSqlite(path: string, batchSize: number): Promise<BareLoop> {
  const file = new DatabaseSync(path)
  file.exec('PRAGMA synchronous = FULL; PRAGMA busy_timeout = 1000; PRAGMA cache_size = -32768')
  const due = '(coalesce(claimed_until, next_attempt_at, 0))'
  const now = `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`
  const claim = file.prepare(
    `UPDATE ${TABLE} SET claimed_until = ${now} + 60000000, claimed_by = 'bare', claim_count = claim_count + 1
     WHERE id IN (SELECT id FROM ${TABLE} WHERE ${pending} AND ${due} <= ${now} ORDER BY ${due}, created_at, id LIMIT ?1)
     RETURNING ${returned}`,
  )
  const settle = file.prepare(
    `UPDATE ${TABLE} SET processed_at = ${now}, claimed_until = NULL, claimed_by = NULL, claim_count = 0
     WHERE id IN (SELECT value FROM json_each(?1)) AND claimed_by = 'bare'`,
  )
  return {
    async run(deliver) {
      for (let done = 0; ; ) {
        // node:sqlite types rows as records of SQL values; these are the columns that were asked for.
        const rows = claim.all(batchSize) as unknown as BareRow[]
        if (rows.length === 0) return done
        await deliver(rows)
        settle.run(JSON.stringify(rows.map(({ id }) => id)))
        done += rows.length
        // The database blocks this thread: others get their turn only when the loop yields.
        await setImmediate()
      }
    },
    async close() {
      file.close()
    },
  }
}
