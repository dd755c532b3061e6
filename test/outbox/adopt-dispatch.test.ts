/** A table that was adopted serves its dispatcher: what was open is delivered, what was processed is not. */
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { adoptTable } from '../../src/sources/outbox/adopt/adopt.ts'
import { createDispatcher } from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import { query } from '../world/postgres.ts'
import { stores } from '../world/stores.ts'

const TABLES = {
  postgres: `CREATE TABLE "OutboxMessages" ("Id" uuid PRIMARY KEY DEFAULT gen_random_uuid(), "TenantId" uuid NOT NULL, "EventType" varchar(200) NOT NULL,
      "Payload" jsonb NOT NULL, "CreatedAt" timestamp NOT NULL, "IsProcessed" boolean NOT NULL DEFAULT false);
    INSERT INTO "OutboxMessages" ("TenantId", "EventType", "Payload", "CreatedAt", "IsProcessed")
    SELECT md5(i::text)::uuid, 'OrderPlaced', to_jsonb(i), timestamp '2026-01-01' + i * interval '1 second', i % 2 = 0 FROM generate_series(1, 10) AS i`,
  sqlite: `CREATE TABLE "OutboxMessages" ("Id" TEXT PRIMARY KEY, "TenantId" TEXT NOT NULL, "EventType" TEXT NOT NULL,
      "Payload" TEXT NOT NULL, "CreatedAt" TEXT NOT NULL, "IsProcessed" INTEGER NOT NULL DEFAULT 0);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)
    INSERT INTO "OutboxMessages" SELECT hex(randomblob(16)), i, 'OrderPlaced', CAST(i AS TEXT), strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + i, 'unixepoch'), i % 2 = 0 FROM n`,
}

describe.each(stores)('a legacy table on $name that was adopted', ({ name, fresh }) => {
  it('has its open messages delivered, in their order and once, with their keys', async () => {
    const place = await fresh()
    if (name === 'postgres') await query(place.url, TABLES.postgres)
    else {
      const db = new DatabaseSync(place.url.slice('sqlite:'.length))
      db.exec(TABLES.sqlite)
      db.close()
    }
    const got: { payload: string; key: string }[] = []
    try {
      expect(await adoptTable(place.url, { naming: 'pascal' })).toMatchObject({ rows: 10, complete: true })
      const dispatcher = createDispatcher({
        url: place.url,
        naming: 'pascal',
        concurrency: 1,
        transport: async ({ payload, key }) =>
          void got.push({ payload: Buffer.from(payload).toString(), key }),
      })
      try {
        await dispatcher.drain()
        await dispatcher.drain()
      } finally {
        await dispatcher.stop()
      }
      expect(got.map(({ payload }) => payload)).toEqual(['1', '3', '5', '7', '9'])
      expect(new Set(got.map(({ key }) => key)).size).toBe(5)
    } finally {
      await place.dispose()
    }
  })
})
