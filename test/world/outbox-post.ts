/** An outbox on a store of its own, as an office would know it, and rows that tests write into it. */
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { DEFAULT_THRESHOLDS } from '../../src/sources/outbox/served/health.ts'
import { OutboxMeter } from '../../src/sources/outbox/served/meter.ts'
import type { OutboxHandle } from '../../src/sources/outbox/served/outbox-handle.ts'
import { onDatabase } from '../../src/sources/outbox/sql/table.ts'
import { type Layout, readLayout } from '../../src/sources/outbox/table/layout.ts'
import { indexesOf, indexStatement, outboxSchema } from '../../src/sources/outbox/table/schema.ts'
import {
  COLUMN_NAMES,
  type ColumnName,
  columnType,
  nameTable,
  quote,
  shortHash,
  type TableOptions,
} from '../../src/sources/outbox/table/table-names.ts'
import type { Database, Value } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import type { FreshStore, StoreKind } from './stores.ts'

const TIMES = ['createdAt', 'processedAt', 'nextAttemptAt', 'claimedUntil', 'deadAt'] as const
type TimeColumn = (typeof TIMES)[number]

/** A row to be written; times in microseconds, or `never`. What is left out has its default. */
export type TestRow = Readonly<
  Partial<Record<Exclude<ColumnName, TimeColumn | 'retryCount'>, string>> &
    Partial<Record<TimeColumn, bigint | 'never'>> & { readonly retryCount?: number }
>

/** The present of the tests. */
export const OUTBOX_NOW = instant(1_800_000_000_000_000n)

export class PostedOutbox {
  readonly db: Database
  readonly layout: Layout
  readonly clock: TestClock
  readonly url: string
  readonly #place: FreshStore

  private constructor(place: FreshStore, db: Database, layout: Layout, clock: TestClock) {
    this.#place = place
    this.url = place.url
    this.db = db
    this.layout = layout
    this.clock = clock
  }

  /** A table as `outboxSchema` makes it. */
  static open(kind: StoreKind, options: TableOptions = {}): Promise<PostedOutbox> {
    return PostedOutbox.#make(kind, outboxSchema(kind.name, options), options)
  }

  /** A table of others, in Pascal case and with types of its own, to which the columns it lacked were added. */
  static openAdopted(kind: StoreKind): Promise<PostedOutbox> {
    return PostedOutbox.#make(kind, adoptedSchema(kind.name), { naming: 'pascal' })
  }

  static async #make(kind: StoreKind, schema: string, options: TableOptions): Promise<PostedOutbox> {
    const place = await kind.fresh()
    const db = openDatabase(place.url, { poolSize: 4 })
    await db.transaction('test.schema', (tx) => db.script(tx, schema))
    const clock = new TestClock()
    clock.freeze(OUTBOX_NOW)
    return new PostedOutbox(place, db, await readLayout(db.dialect, options, onDatabase(db)), clock)
  }

  async close(): Promise<void> {
    await this.db.close()
    await this.#place.dispose()
  }

  /** The outbox as an office knows it. */
  post(changes: Partial<OutboxHandle> = {}): OutboxHandle {
    return {
      name: 'orders',
      db: this.db,
      inStore: false,
      meter: new OutboxMeter(this.clock),
      thresholds: DEFAULT_THRESHOLDS,
      onDead: 'hold',
      layout: async () => this.layout,
      ...changes,
    }
  }

  /** Writes rows, in this order. */
  async insert(...rows: readonly TestRow[]): Promise<void> {
    for (const row of rows) {
      const given = Object.entries({
        tenantId: 't1',
        eventType: 'order.created',
        payload: '{"a":1}',
        createdAt: OUTBOX_NOW,
        ...row,
        // The keys of a row are names of columns.
      }) as [ColumnName, string | bigint | number][]
      const columns = given.map(([name]) => this.layout.c[name])
      const values: Value[] = []
      const expressions = given.map(([name, value]) => {
        if (value === 'never') return this.layout.dueBounds.never
        values.push(name === 'payload' ? Buffer.from(String(value)) : value)
        return this.#expression(name, `$${values.length}`)
      })
      const text = `INSERT INTO ${this.layout.sqlTable} (${columns.join(', ')}) VALUES (${expressions.join(', ')})`
      const statement = this.layout.statement(`test.${shortHash(text)}`, text)
      await this.db.transaction('test.insert', (tx) => tx.run(statement, ...values))
    }
  }

  #expression(name: ColumnName, parameter: string): string {
    if (name === 'payload') return this.layout.payloadFrom(parameter)
    return TIMES.some((time) => time === name)
      ? this.layout.time(name, parameter)
      : this.layout.typed(name, parameter)
  }

  /** Runs SQL on the store. */
  async execute(text: string): Promise<void> {
    await this.db.transaction('test.script', (tx) => this.db.script(tx, text))
  }
}

const ADOPTED_TYPES = {
  postgres: {
    id: 'uuid PRIMARY KEY DEFAULT gen_random_uuid()',
    tenantId: 'uuid NOT NULL',
    eventType: 'character varying(200) NOT NULL',
    payload: 'jsonb NOT NULL',
    createdAt: 'timestamp without time zone NOT NULL',
    retryCount: 'integer',
    processedAt: 'timestamp without time zone',
    idempotencyKey: 'uuid',
  },
  sqlite: {
    id: 'TEXT PRIMARY KEY',
    tenantId: 'TEXT NOT NULL',
    eventType: 'TEXT NOT NULL',
    payload: 'TEXT NOT NULL',
    createdAt: 'TEXT NOT NULL',
    retryCount: 'INTEGER',
    processedAt: 'TEXT',
    idempotencyKey: 'TEXT',
  },
} as const

function adoptedSchema(dialect: 'postgres' | 'sqlite'): string {
  const names = nameTable({ naming: 'pascal' })
  const own: Readonly<Partial<Record<ColumnName, string>>> = ADOPTED_TYPES[dialect]
  const columns = COLUMN_NAMES.map(
    (name) => `${quote(names.columns[name])} ${own[name] ?? columnType(dialect, name)}`,
  )
  const indexes = indexesOf(names, dialect).map((index) => `${indexStatement(names, index)};`)
  return `CREATE TABLE ${names.sqlTable} (${columns.join(', ')});\n${indexes.join('\n')}`
}
