import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { captureAllNew } from '../../../test/world/capture.ts'
import { captureFromQueue } from '../../../test/world/letter-acts.ts'
import { type FreshStore, type StoreKind, stores } from '../../../test/world/stores.ts'
import { type Instant, instant } from '../../core/clock.ts'
import { showBytes } from '../../core/content.ts'
import { SystemClock } from '../../core/system-clock.ts'
import { formatMicros } from '../../core/timestamp.ts'
import { getHistory } from '../../history/get.ts'
import { recordHistory } from '../../history/record.ts'
import { readLetter } from '../../letters/lists/detail.ts'
import { newRegisters } from '../../letters/registers.ts'
import type { FailureReport } from '../../letters/reports/report.ts'
import { letterDetail } from '../../letters/view.ts'
import { inOffice } from '../../letters/work.ts'
import { MIGRATIONS } from '../../migrations.ts'
import type { Database } from '../../store/database.ts'
import { migrate } from '../../store/migrations.ts'
import { openDatabase } from '../../store/open.ts'
import { createEngineViews } from './views.ts'

type Row = Record<string, string | number | null>

const NAMES = { dlqTableName: 'engineDlq', historyTableName: 'engineHistory' }
const AT = instant(1_800_000_000_123_456n)

/** Payloads at every edge of UTF-8, right and wrong. */
const PAYLOADS: readonly Uint8Array[] = [
  '',
  '7b226b6579223a2022c3a4e282acf09f9a80227d',
  'efbbbf7b7d',
  'c2',
  '80',
  'c080',
  'c1bf',
  'c280',
  'dfbf',
  'e08080',
  'e09fbf',
  'e0a080',
  'ecbfbf',
  'ed9fbf',
  'eda080',
  'edbfbf',
  'ee8080',
  'efbfbf',
  'f0808080',
  'f08fbfbf',
  'f0908080',
  'f3bfbfbf',
  'f48fbfbf',
  'f4908080',
  'f5808080',
  'ff',
  'e282',
  'e28241',
  'e282ac80',
  'c3c28080',
  'f09f9a',
  '61c3a4ff',
  '090a0d1b7f',
  'fffefd',
  'fffefdfc',
  '8182838485',
].map((hex) => Buffer.from(hex, 'hex'))

const report = (changes: Partial<FailureReport>): FailureReport => ({
  source: 'http',
  engine: 'hmac',
  instanceId: 'eu-1',
  correlationId: 'c-1',
  sourceId: 's-1',
  originalQueue: 'hmac-rotation-queue',
  encoding: '',
  kind: '',
  reference: '',
  headers: null,
  payload: Buffer.from('{}'),
  dequeueCount: 5,
  firstFailureAt: AT,
  lastFailureAt: AT,
  errorClass: 'Error',
  errorMessage: 'no key',
  errorStack: null,
  failedBy: null,
  actor: 'test',
  ...changes,
})

describe.each(stores)('the SQL views on $name', (kind: StoreKind) => {
  const clock = new SystemClock()
  let store: FreshStore
  let db: Database

  beforeEach(async () => {
    store = await kind.fresh()
    db = openDatabase(store.url, { poolSize: 2 })
    await migrate(db, MIGRATIONS)
  })
  afterEach(async () => {
    await db.close()
    await store.dispose()
  })

  const captureAll = (reports: readonly FailureReport[]) =>
    inOffice(db, clock, 'capture', async (work) => {
      await captureAllNew(work, newRegisters(), reports)
    })

  /** As somebody with a connection of their own sees it. */
  const select = (table: string): Promise<Row[]> => selectFrom(store.url, table)

  it('say of letters what the API says', async () => {
    await createEngineViews(db, NAMES)
    const instances = [
      'plain',
      'a/b\\c#d?e%f',
      'tab\tnewline\n\u0001\u001f\u007f\u0080\u009f\u00a0',
      'ünï-🚀',
      "it's",
    ]
    const long = instant(-62_135_596_800_000_000n + 1n)
    const reports = [
      ...instances.map((instanceId, i) => report({ instanceId, sourceId: `instance-${i}` })),
      report({ sourceId: 'no-queue', engine: 'update-publisher', originalQueue: null }),
      report({ sourceId: 'old', firstFailureAt: long, lastFailureAt: instant(-1n) }),
      ...PAYLOADS.map((payload, i) => report({ payload, sourceId: `payload-${i}` })),
    ]
    await captureAll(reports)
    const rows = await select('engineDlq')
    expect(rows).toHaveLength(reports.length)
    for (const row of rows) expect(row).toEqual(await letterRow(db, row))
  })

  it('show text wherever the API shows text, whatever the bytes are', async () => {
    await createEngineViews(db, NAMES)
    const random = Array.from({ length: 400 }, (_, i) => randomBytes(i))
    await captureAll(random.map((payload, i) => report({ payload, sourceId: `${i}` })))
    const rows = await select('engineDlq')
    const shown = new Set(rows.map((row) => `${row.OriginalMessageEncoding} ${row.OriginalMessage}`))
    for (const payload of random) {
      const { text, encoding } = showBytes(payload)
      expect(shown, payload.toString('hex')).toContain(`${encoding} ${text}`)
    }
  })

  it('give bytes with a null character in base64: PostgreSQL has no text for them', async () => {
    await createEngineViews(db, NAMES)
    await captureAll([report({ payload: Buffer.from('a\0b') })])
    const [row] = await select('engineDlq')
    expect(row).toMatchObject({ OriginalMessage: 'YQBi', OriginalMessageEncoding: 'base64' })
  })

  it('say of history what the API says', async () => {
    await createEngineViews(db, NAMES)
    const entry = { engine: 'hmac', operation: 'rotate', createdAt: AT, durationMs: 12 } as const
    await db.transaction('record', (tx) =>
      recordHistory(tx, [
        {
          ...entry,
          status: 'Succeeded',
          instanceId: 'eu-1',
          correlationId: 'c-1',
          input: Buffer.from('{}'),
          output: null,
        },
        {
          ...entry,
          status: 'Failed',
          instanceId: null,
          correlationId: 'c/%',
          error: 'no',
          input: Buffer.of(0xff),
          output: Buffer.from('null'),
        },
      ]),
    )
    const registers = newRegisters()
    for (const sourceId of ['item-1', 'a/b']) await captureFromQueue({ db, clock, registers }, sourceId)
    const rows = await select('engineHistory')
    expect(rows.map((row) => row.CorrelationId).sort()).toEqual(['a/b', 'c-1', 'c/%', 'item-1'])
    for (const row of rows) expect(row).toEqual(await historyRow(db, row))
  })

  it('take the names that the configuration gives', async () => {
    await createEngineViews(db, { dlqTableName: 'Dead', historyTableName: 'Past' })
    await captureAll([report({})])
    expect(await select('Dead')).toHaveLength(1)
    expect(await select('Past')).toHaveLength(1)
  })

  it('are made once, also by servers that start together, and again when they are out of date', async () => {
    const other = openDatabase(store.url, { poolSize: 1 })
    try {
      await Promise.all([createEngineViews(db, NAMES), createEngineViews(other, NAMES)])
    } finally {
      await other.close()
    }
    await createEngineViews(db, NAMES)
    await db.transaction('age', (tx) => db.script(tx, OUTDATE[kind.name]))
    await createEngineViews(db, NAMES)
    expect(await select('engineDlq')).toEqual([])
    await captureAll([report({})])
    expect(await select('engineDlq')).toHaveLength(1)
  })

  it.each(['letters', 'history', 'queues'])('are refused the name %s of a table', async (name) => {
    await expect(createEngineViews(db, { ...NAMES, dlqTableName: name })).rejects.toThrow(
      `engines.tables.dlqTableName: '${name}' is the name of one of Bartleby's own tables`,
    )
  })

  it.each(['a b', 'x"; DROP TABLE letters', ''])('are refused the name %o', async (name) => {
    await expect(createEngineViews(db, { ...NAMES, historyTableName: name })).rejects.toThrow(
      'engines.tables.historyTableName',
    )
  })
})

/** Leaves a view of another version in place of the DLQ's. */
const OUTDATE = {
  postgres: `COMMENT ON VIEW bartleby."engineDlq" IS 'another version'`,
  sqlite: `DROP VIEW "engineDlq"; CREATE VIEW "engineDlq" AS SELECT 1 AS "PartitionKey" WHERE 0`,
}

/** Text with some bytes of chance in it: right as often as wrong. */
function randomBytes(seed: number): Buffer {
  let state = seed * 2_654_435_761 + 1
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const pieces = ['a', 'é', '€', '🚀', '\u07ff', '\u0800', '\uffff', '\u{10ffff}', ' ']
  const text = Array.from({ length: 1 + next(6) }, () => pieces[next(pieces.length)]).join('')
  const bytes = Buffer.from(text)
  if (next(2) === 0) bytes[next(bytes.length)] = 1 + next(255)
  return next(4) === 0 ? bytes.subarray(0, bytes.length - 1) : bytes
}

async function selectFrom(url: string, table: string): Promise<Row[]> {
  if (url.startsWith('sqlite:')) {
    const file = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
    try {
      return file
        .prepare(`SELECT * FROM "${table}"`)
        .all()
        .map((row) => ({ ...row })) as Row[]
    } finally {
      file.close()
    }
  }
  const client = new pg.Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<Row>(`SELECT * FROM bartleby."${table}"`)
    return rows.map((row) => ('DurationMs' in row ? { ...row, DurationMs: Number(row.DurationMs) } : row))
  } finally {
    await client.end()
  }
}

/** The row that the API's own reading of the letter makes. */
async function letterRow(db: Database, { Engine, RowKey }: Row): Promise<Row> {
  const letter = await db.session('read', (session) => readLetter(session, String(Engine), String(RowKey)))
  if (letter === null) throw new Error(`no letter ${RowKey}`)
  const shown = letterDetail({ letter, failures: [], history: [], restorableUntil: null, remarks: [] })
  return {
    PartitionKey: shown.engine,
    RowKey: shown.rowKey,
    Engine: shown.engine,
    InstanceId: shown.instanceId,
    OriginalQueue: shown.originalQueue,
    OriginalMessage: shown.originalMessage,
    ErrorMessage: shown.errorMessage,
    DequeueCount: shown.dequeueCount,
    FirstFailureAtUtc: shown.firstFailureAtUtc,
    LastFailureAtUtc: shown.lastFailureAtUtc,
    Status: shown.status,
    ResolutionNotes: shown.resolutionNotes,
    ResolvedAtUtc: shown.resolvedAtUtc,
    ResolvedBy: shown.resolvedBy,
    CorrelationId: shown.correlationId,
    OriginalMessageEncoding: shown.originalMessageEncoding,
  }
}

async function historyRow(db: Database, { Engine, RowKey }: Row): Promise<Row> {
  const entry = await db.session('read', (session) => getHistory(session, String(Engine), String(RowKey)))
  const shownOf = (bytes: Uint8Array | null) =>
    bytes === null ? { text: null, encoding: null } : showBytes(bytes)
  const input = shownOf(entry.input)
  const output = shownOf(entry.output)
  const createdAt: Instant = entry.createdAt
  return {
    PartitionKey: entry.engine,
    RowKey: entry.rowKey,
    Engine: entry.engine,
    InstanceId: entry.instanceId,
    Operation: entry.operation,
    Status: entry.status,
    DurationMs: entry.durationMs,
    Input: input.text,
    Output: output.text,
    Error: entry.error,
    CreatedAtUtc: formatMicros(createdAt),
    CorrelationId: entry.correlationId,
    InputEncoding: input.encoding,
    OutputEncoding: output.encoding,
  }
}
