import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Application, type AppTransaction, adapterFor } from '../../../../test/world/application.ts'
import { freshPostgres, freshSqlite, type StoreKind } from '../../../../test/world/stores.ts'
import { TestClock } from '../../../core/test-clock.ts'
import type { NewMessage } from '../table/message.ts'
import type { TableOptions } from '../table/table-names.ts'
import { createKey } from './keys.ts'
import { createOutbox, type Outbox } from './writer.ts'

const POSTGRES: StoreKind = { name: 'postgres', fresh: freshPostgres }
const SQLITE: StoreKind = { name: 'sqlite', fresh: freshSqlite }

const KEY = createKey('shop', 'order', '17', 'placed')
const TENANT = '0f8fad5b-d9cb-469f-a165-70867728950e'
const MESSAGE = { tenantId: TENANT, eventType: 'OrderPlaced', payload: { b: 1, a: [2] } } satisfies NewMessage

/** Columns that adoption adds to a table of others. */
const ADDED = `"NextAttemptAt" timestamptz, "ClaimedUntil" timestamptz, "ClaimedBy" text,
  "ClaimCount" integer NOT NULL DEFAULT 0, "DeadAt" timestamptz, "OrderingKey" text, "Headers" json,
  "CorrelationId" text, "LetterId" bigint, "LetterDue" boolean NOT NULL DEFAULT false`

/** As an ORM of another language makes it: ids come from the application, and nothing has a default. */
const legacyTable = (payload: string) => `
  CREATE TABLE "OutboxMessages" ("Id" uuid PRIMARY KEY, "TenantId" uuid NOT NULL, "EventType" varchar(20) NOT NULL,
    "Payload" ${payload} NOT NULL, "CreatedAt" timestamptz NOT NULL, "RetryCount" integer NOT NULL,
    "IsProcessed" boolean NOT NULL, "IdempotencyKey" uuid, "ProcessedAt" timestamptz, "Error" text, ${ADDED});
  CREATE UNIQUE INDEX ON "OutboxMessages" ("TenantId", "IdempotencyKey") WHERE "IdempotencyKey" IS NOT NULL;
  CREATE TABLE "OutboxMessagesKeys" (tenant_id text, idempotency_key uuid, message_id text NOT NULL,
    payload_sha256 bytea NOT NULL, recorded_at bigint NOT NULL, PRIMARY KEY (tenant_id, idempotency_key));`

describe.each(['text', 'json', 'jsonb', 'bytea'])('an adopted table with a payload of %s', (type) => {
  let app: Application
  let outbox: Outbox<AppTransaction>
  beforeAll(async () => {
    app = await Application.open(POSTGRES, legacyTable(type))
    outbox = createOutbox({ adapter: adapterFor(POSTGRES), naming: 'pascal' })
  })
  beforeEach(() => app.script('DELETE FROM "OutboxMessages"; DELETE FROM "OutboxMessagesKeys"'))
  afterAll(() => app.close())
  const add = (message: NewMessage) => app.transaction((tx) => outbox.add(tx, message))
  const rows = () => app.rows('SELECT * FROM "OutboxMessages" ORDER BY "CreatedAt", "Id"')

  it('is written with what its columns want', async () => {
    const added = await add({ ...MESSAGE, key: KEY, headers: { a: 'b' } })
    const [row] = await rows()
    expect(row).toMatchObject({
      Id: added.id,
      TenantId: TENANT,
      IdempotencyKey: KEY,
      RetryCount: 0,
      IsProcessed: false,
      Headers: { a: 'b' },
      ProcessedAt: null,
    })
    const payload = Buffer.isBuffer(row?.Payload) ? row.Payload.toString() : row?.Payload
    expect(typeof payload === 'string' ? JSON.parse(payload) : payload).toEqual({ b: 1, a: [2] })
  })

  it('knows doubles, those of one call too, and keeps the order of what it adds', async () => {
    const numbers = Array.from({ length: 40 }, (_, at) => at)
    const messages = numbers.map((at) => ({
      ...MESSAGE,
      payload: at,
      key: createKey('shop', 'order', at, 'placed'),
    }))
    const added = await app.transaction((tx) => outbox.addMany(tx, messages))
    expect((await rows()).map(({ Id }) => Id)).toEqual(added.map(({ id }) => id))
    const again = await app.transaction((tx) =>
      outbox.addMany(tx, [...messages, { ...MESSAGE, payload: 'null' }]),
    )
    expect(again.slice(0, -1)).toEqual(added.map((each) => ({ ...each, alreadyExisted: true })))
    expect(again.at(-1)?.alreadyExisted).toBe(false)
    expect(await add({ ...MESSAGE, payload: 41, key: messages[0]?.key ?? '' })).toMatchObject({
      id: added[0]?.id,
      conflict: true,
    })
  })

  it('compares what a purged row had as its payload', async () => {
    const { id } = await add({ ...MESSAGE, key: KEY })
    const bytes = type === 'bytea' ? '"Payload"' : `convert_to("Payload"::text, 'UTF8')`
    await app.script(`INSERT INTO "OutboxMessagesKeys" SELECT "TenantId"::text, "IdempotencyKey", "Id"::text,
      sha256(${bytes}), 0 FROM "OutboxMessages"; DELETE FROM "OutboxMessages"`)
    expect(await add({ ...MESSAGE, key: KEY })).toEqual({ id, idempotencyKey: KEY, alreadyExisted: true })
    expect(await add({ ...MESSAGE, key: KEY, payload: 1 })).toMatchObject({ id, conflict: true })
  })

  it('refuses what its columns do not take before the database sees it', async () => {
    const tx = await app.begin()
    const refused = async (message: Partial<NewMessage>, reason: RegExp) => {
      for (const attempt of [
        () => outbox.add(tx, { ...MESSAGE, ...message }),
        () => outbox.addMany(tx, [MESSAGE, { ...MESSAGE, ...message }]),
      ]) {
        const error = expect.objectContaining({
          code: 'outbox_message_invalid',
          message: expect.stringMatching(reason),
        })
        await expect(attempt()).rejects.toEqual(error)
      }
    }
    await refused({ tenantId: 'shop' }, /tenantId is no uuid/)
    await refused({ eventType: 'x'.repeat(21) }, /eventType is longer than the 20 characters/)
    if (type !== 'bytea') {
      await refused({ payload: Buffer.from([0xff]) }, /payload is not UTF-8/)
      await refused({ payload: '"\0"' }, /payload holds U\+0000/)
    }
    if (type.startsWith('json')) {
      await refused({ payload: '{"a":' }, /payload is not JSON/)
      await refused({ payload: '\ufeff1' }, /payload is not JSON/)
      await refused(
        { payload: `${'[{"a":'.repeat(9_000)}1${'}]'.repeat(9_000)}` },
        /payload is nested deeper/,
      )
    }
    if (type === 'jsonb') {
      await refused({ payload: { a: '\0' } }, /payload holds U\+0000/)
      await refused({ payload: { 'b\ud800': 1 } }, /payload holds half a character/)
      await refused({ payload: '{"\\udc00 ":"\\ud83d\\ude00"}' }, /payload holds half a character/)
      await refused({ payload: '[1, 1e131072]' }, /payload holds a number/)
      await refused({ payload: '1E-16384' }, /payload holds a number/)
      await refused({ payload: `0.${'1'.repeat(16_384)}` }, /payload holds a number/)
    }
    expect(await outbox.add(tx, { ...MESSAGE, eventType: '😀'.repeat(20) })).toBeDefined()
    await tx.commit()
  })

  it('takes everything that is legal there', async () => {
    const legal = [
      '"\\ud83d\\ude00 \\\\u0000 \\""',
      '[1e131071, -1E-16383, 0.5]',
      `${'['.repeat(5_000)}"]}"${']'.repeat(5_000)}`,
      { a: '😀\u007f"\\' },
    ]
    await app.transaction((tx) =>
      outbox.addMany(
        tx,
        legal.map((payload) => ({ ...MESSAGE, payload })),
      ),
    )
    for (const payload of legal) await add({ ...MESSAGE, payload })
    expect(await rows()).toHaveLength(2 * legal.length)
  })
})

describe('a table with columns of its own', () => {
  const adopt = async (
    kind: StoreKind,
    columns: string,
    options: TableOptions = {},
  ): Promise<{ app: Application; outbox: Outbox<AppTransaction> }> => {
    const app = await Application.open(kind, columns)
    const clock = new TestClock()
    clock.freeze(clock.now())
    return { app, outbox: createOutbox({ adapter: adapterFor(kind), clock, ...options }) }
  }
  const dispatching = (
    time: string,
  ) => `retry_count integer, processed_at ${time}, error text, next_attempt_at ${time},
    claimed_until ${time}, claimed_by text, claim_count integer DEFAULT 0, dead_at ${time}, ordering_key text,
    headers text, correlation_id text, letter_id bigint, letter_due boolean DEFAULT false`

  it('may count its tenants, keep coarse times and call things otherwise', async () => {
    const { app, outbox } = await adopt(
      POSTGRES,
      `CREATE SCHEMA sales; CREATE TABLE sales."the ""box""?$1" (number bigserial PRIMARY KEY, tenant_id integer,
        event_type text, payload text, created_at timestamp(3) without time zone, idempotency_key text, ${dispatching('timestamptz')},
        UNIQUE (tenant_id, idempotency_key))`,
      { table: 'sales.the "box"?$1', columns: { id: 'number' } },
    )
    const messages = Array.from({ length: 30 }, (_, at) => ({
      ...MESSAGE,
      tenantId: '7',
      payload: `${at}`,
      key: createKey('t', 'order', at, 'placed'),
    }))
    await app.transaction((tx) => outbox.addMany(tx, messages))
    const rows = await app.rows('SELECT * FROM sales."the ""box""?$1" ORDER BY created_at, number')
    expect(rows.map(({ payload }) => payload)).toEqual(messages.map(({ payload }) => payload))
    expect(rows[0]).toMatchObject({ tenant_id: 7, idempotency_key: messages[0]?.key })
    const again = await app.transaction((tx) => outbox.addMany(tx, messages))
    expect(again.every(({ alreadyExisted, conflict }) => alreadyExisted && !conflict)).toBe(true)
    for (const tenantId of ['seven', '07', '2147483648', '1e3'])
      await expect(app.transaction((tx) => outbox.add(tx, { ...MESSAGE, tenantId }))).rejects.toThrow(
        /tenantId is no whole number that a column of integer takes/,
      )
    await app.close()
  })

  it('may lie on SQLite with texts for everything, and ids that nobody makes', async () => {
    const { app, outbox } = await adopt(
      SQLITE,
      `CREATE TABLE outbox_messages (id TEXT PRIMARY KEY NOT NULL, tenant_id TEXT, event_type TEXT, payload TEXT, created_at TEXT,
        is_processed BOOLEAN NOT NULL, idempotency_key TEXT, ${dispatching('INTEGER')});
       CREATE UNIQUE INDEX twins ON outbox_messages (tenant_id, idempotency_key) WHERE idempotency_key IS NOT NULL`,
    )
    const numbers = Array.from({ length: 130 }, (_, at) => at)
    for (const key of [false, true]) {
      await app.script('DELETE FROM outbox_messages')
      const messages = numbers.map((at) => ({
        ...MESSAGE,
        payload: `${at}`,
        ...(key && { key: createKey('t', 'order', at, 'placed') }),
      }))
      const added = await app.transaction((tx) => outbox.addMany(tx, messages))
      const rows = await app.rows('SELECT * FROM outbox_messages ORDER BY created_at, id')
      expect(rows.map(({ payload }) => payload)).toEqual(messages.map(({ payload }) => payload))
      expect(rows.map(({ id }) => id)).toEqual(added.map(({ id }) => id))
      expect(rows[0]).toMatchObject({ is_processed: 0, retry_count: 0 })
      expect(rows[0]?.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    }
    await expect(
      app.transaction((tx) => outbox.add(tx, { ...MESSAGE, payload: Buffer.from([0xff]) })),
    ).rejects.toThrow(/payload is not UTF-8/)
    await app.close()
  })
})
