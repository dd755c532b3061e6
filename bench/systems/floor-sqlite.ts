/**
 * The floor on SQLite: node:sqlite with prepared statements, one transaction per batch of 1,000, durable at every
 * commit (WAL, synchronous=FULL). Lease and complete are two transactions, as they are for any consumer.
 */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Consumption, Payload, Surroundings, System } from '../system.ts'

const claimSize = 1_000
const idleMs = 2

export async function open({ folder }: Surroundings): Promise<System> {
  const db = new DatabaseSync(join(folder, 'floor.db'))
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, lease_deadline INTEGER, attempts INTEGER NOT NULL DEFAULT 0, payload TEXT NOT NULL);
    CREATE TABLE dead (id INTEGER PRIMARY KEY, attempts INTEGER NOT NULL, payload TEXT NOT NULL)`)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const insert = db.prepare('INSERT INTO item (payload) VALUES (?)')
  const claim = db.prepare(`UPDATE item SET lease_deadline = ?, attempts = attempts + 1
    WHERE id IN (SELECT id FROM item WHERE lease_deadline IS NULL ORDER BY id LIMIT ?) RETURNING id, payload`)
  const complete = db.prepare('DELETE FROM item WHERE id = ?')
  const bury = db.prepare('INSERT INTO dead SELECT id, attempts, payload FROM item WHERE id = ?')
  const count = db.prepare(
    'SELECT (SELECT count(*) FROM item) AS waiting, (SELECT count(*) FROM dead) AS dead',
  )

  function transaction(work: () => void): void {
    begin.run()
    work()
    commit.run()
  }

  return {
    batchesInFlight: 1,
    processIds: [],
    async enqueueBatch(payloads: readonly Payload[]) {
      transaction(() => {
        for (const payload of payloads) insert.run(JSON.stringify(payload))
      })
    },
    async enqueueOne(payload: Payload) {
      insert.run(JSON.stringify(payload))
    },
    async consume({ seen, ending }: Consumption) {
      const stopping = new AbortController()
      async function loop(): Promise<void> {
        while (!stopping.signal.aborted) {
          const rows = claim.all(performance.timeOrigin + performance.now() + 60_000, claimSize)
          for (const row of rows) seen(JSON.parse(String(row.payload)).n)
          if (rows.length > 0) {
            transaction(() => {
              for (const row of rows) {
                const id = Number(row.id)
                if (ending === 'fail') bury.run(id)
                complete.run(id)
              }
            })
          }
          // The database blocks this thread, so the producer gets its turn only when the consumer yields.
          await (rows.length > 0 ? setImmediate() : setTimeout(idleMs))
        }
      }
      const running = loop()
      return {
        async stop() {
          stopping.abort()
          await running
        },
      }
    },
    async counts() {
      const row = count.get()
      return { waiting: Number(row?.waiting), dead: Number(row?.dead) }
    },
    async close() {
      db.close()
    },
  }
}
