import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { OutboxStore } from '../../../../test/world/outbox.ts'
import { OutboxOffice, PLACES } from '../../../../test/world/outbox-office.ts'
import { indexesOf, indexStatement } from '../table/schema.ts'
import { nameTable } from '../table/table-names.ts'

const OPTIONS = { naming: 'pascal' } as const

/** A table as another framework made it, and adoption left it: ids are texts, payloads JSON, times have no zone. */
const COLUMNS = {
  postgres: `"Id" uuid PRIMARY KEY, "TenantId" integer NOT NULL, "EventType" varchar(200) NOT NULL, "Payload" jsonb NOT NULL,
    "CreatedAt" timestamp NOT NULL, "RetryCount" integer, "IsProcessed" boolean NOT NULL DEFAULT false, "IdempotencyKey" uuid,
    "ProcessedAt" timestamp, "Error" varchar(4000), "NextAttemptAt" timestamptz, "ClaimedUntil" timestamptz, "ClaimedBy" text,
    "ClaimCount" integer NOT NULL DEFAULT 0, "DeadAt" timestamptz, "OrderingKey" text, "Headers" json, "CorrelationId" text,
    "LetterId" bigint, "LetterDue" boolean NOT NULL DEFAULT false`,
  sqlite: `"Id" TEXT PRIMARY KEY, "TenantId" INTEGER NOT NULL, "EventType" TEXT NOT NULL, "Payload" TEXT NOT NULL,
    "CreatedAt" TEXT NOT NULL, "RetryCount" INTEGER, "IsProcessed" INTEGER NOT NULL DEFAULT 0, "IdempotencyKey" TEXT,
    "ProcessedAt" TEXT, "Error" TEXT, "NextAttemptAt" INTEGER, "ClaimedUntil" INTEGER, "ClaimedBy" TEXT,
    "ClaimCount" INTEGER NOT NULL DEFAULT 0, "DeadAt" INTEGER, "OrderingKey" TEXT, "Headers" TEXT, "CorrelationId" TEXT,
    "LetterId" INTEGER, "LetterDue" INTEGER NOT NULL DEFAULT 0`,
}

async function makeTable(table: OutboxStore): Promise<void> {
  const names = nameTable(OPTIONS)
  await table.query(`CREATE TABLE "OutboxMessages" (${COLUMNS[table.dialect]})`)
  for (const index of indexesOf(names, table.dialect)) await table.query(indexStatement(names, index))
}

const FIRST = '7d444840-9dc0-11d1-b245-5ffdce74fad2'

describe.each(PLACES)('letters of an adopted table $name', (place) => {
  let office: OutboxOffice
  beforeAll(async () => {
    office = await OutboxOffice.open(place, OPTIONS, makeTable)
  })
  afterAll(() => office?.close())
  beforeEach(async () => {
    await office.begin()
    await office.table.query('DELETE FROM "OutboxMessages"')
    await office.table.query(
      `INSERT INTO "OutboxMessages" ("Id", "TenantId", "EventType", "Payload", "CreatedAt")
       VALUES ('${FIRST}', 7, 'created', '{"n": 1}', '2026-11-15T08:00:00')`,
    )
  })

  const row = async () => (await office.table.query('SELECT * FROM "OutboxMessages"'))[0]
  const texts = () => office.sent.splice(0).map(({ payload }) => Buffer.from(payload).toString())
  const isTrue = (value: unknown) => value === true || value === 1

  it('hold what the row held, and go back into it', async () => {
    await office.die()
    const { letter } = await office.letter()
    expect(letter).toMatchObject({ sourceId: `orders/${FIRST}`, instanceId: '7', kind: 'created' })
    expect(letter.itemCreatedAt).toBe(BigInt(Date.UTC(2026, 10, 15, 8)) * 1_000n)
    expect(Buffer.from(letter.payload).toString()).toBe('{"n": 1}')
    expect(letter.reference).toMatch(/^[0-9a-f-]{36}$/)
    texts()
    await office.retry('{"n": 2}')
    await office.dispatch()
    expect(texts()).toEqual(['{"n": 2}'])
    expect((await office.letter()).letter.confirmedAt).not.toBeNull()
    expect(isTrue((await row())?.IsProcessed)).toBe(true)
  })

  it('are not edited to what the table cannot keep', async () => {
    await office.die()
    const refused = { code: 'parameter_invalid' }
    await expect(office.retry(Buffer.of(0xff))).rejects.toMatchObject(refused)
    await expect(office.retry('a\0b')).rejects.toMatchObject(refused)
    if (office.table.dialect === 'postgres')
      await expect(office.retry('no JSON')).rejects.toMatchObject(refused)
    expect(await office.acts()).toEqual(['capture'])
  })

  it('are processed for old readers while nobody wants them', async () => {
    await office.die()
    expect(isTrue((await row())?.IsProcessed)).toBe(false)
    await office.change('Resolved')
    await office.reconcile()
    expect(isTrue((await row())?.IsProcessed)).toBe(true)
    await office.change('Pending')
    await office.reconcile()
    expect(isTrue((await row())?.IsProcessed)).toBe(false)
    await office.change('Resolved')
    await office.change('Pending')
    await office.retry()
    texts()
    await office.dispatch()
    expect(texts()).toHaveLength(1)
  })
})
