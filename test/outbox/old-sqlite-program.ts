/**
 * A program from before the adoption, on an SQLite file: writes orders with their messages, and marks some as processed.
 * Ends on the message 'stop', and tells what it did.
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'

const [, , path = ''] = process.argv
const db = new DatabaseSync(path, { timeout: 5_000 })
const turn = [
  'INSERT INTO "Orders" ("Total") VALUES (9.99)',
  `INSERT INTO "OutboxMessages" ("TenantId", "EventType", "Payload") VALUES ('t', 'OrderPlaced', '{"new": true}')`,
  `UPDATE "OutboxMessages" SET "IsProcessed" = 1, "RetryCount" = 1 WHERE "Id" IN (
     SELECT "Id" FROM "OutboxMessages" WHERE "IsProcessed" = 0 ORDER BY "CreatedAt" LIMIT 2)`,
].map((sql) => db.prepare(sql))
const told = { done: 0, failures: [] as string[], slowestMs: 0 }
let stopped = false
process.once('message', () => {
  stopped = true
})
process.send?.('ready')
while (!stopped) {
  const startedAtMs = performance.now()
  try {
    db.exec('BEGIN IMMEDIATE')
    for (const statement of turn) statement.run()
    db.exec('COMMIT')
    told.done += 1
  } catch (error) {
    told.failures.push(String(error))
    if (db.isTransaction) db.exec('ROLLBACK')
  }
  told.slowestMs = Math.max(told.slowestMs, performance.now() - startedAtMs)
  await pause(5)
}
db.close()
process.send?.(told)
process.disconnect?.()
