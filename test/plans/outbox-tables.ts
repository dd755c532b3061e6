/** The tables whose statements are looked at: one of ours, and one that others made and that was adopted. */
import { DatabaseSync } from 'node:sqlite'
import { adoptTable } from '../../src/sources/outbox/adopt/adopt.ts'
import { inboxSchema } from '../../src/sources/outbox/inbox.ts'
import { outboxSchema } from '../../src/sources/outbox/table/schema.ts'
import type { TableOptions } from '../../src/sources/outbox/table/table-names.ts'
import type { Dialect } from '../../src/store/database.ts'
import { query } from '../world/postgres.ts'

export interface TableOf {
  readonly of: string
  readonly options: TableOptions
  /** Rows that it has when it is large. */
  readonly size: number
}

/** The tables, ours with so many rows when it is large. */
export const tablesOf = (size: number): readonly TableOf[] => [
  { of: 'us', options: {}, size },
  { of: 'others', options: { naming: 'pascal' }, size: 20_000 },
]

const FOREIGN: Readonly<Record<Dialect, string>> = {
  postgres: `CREATE TABLE "OutboxMessages" ("Id" uuid PRIMARY KEY, "TenantId" uuid NOT NULL, "EventType" varchar(200) NOT NULL,
    "Payload" jsonb NOT NULL, "CreatedAt" timestamp NOT NULL, "IsProcessed" boolean NOT NULL DEFAULT false)`,
  sqlite: `CREATE TABLE "OutboxMessages" ("Id" TEXT PRIMARY KEY, "TenantId" TEXT NOT NULL, "EventType" TEXT NOT NULL,
    "Payload" TEXT NOT NULL, "CreatedAt" TEXT NOT NULL, "IsProcessed" INTEGER NOT NULL DEFAULT 0)`,
}

/** Makes the table, and an inbox beside it. */
export async function makeTable(dialect: Dialect, url: string, { options }: TableOf): Promise<void> {
  const isOurs = options.naming === undefined
  const script = `${inboxSchema(dialect)}; ${isOurs ? outboxSchema(dialect) : FOREIGN[dialect]}`
  if (dialect === 'postgres') await query(url, script)
  else {
    const file = new DatabaseSync(url.slice('sqlite:'.length))
    file.exec(`PRAGMA journal_mode = WAL; ${script}`)
    file.close()
  }
  if (!isOurs) await adoptTable(url, options)
}
