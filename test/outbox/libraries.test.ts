/**
 * The adapters on the real libraries. These are not ours: they belong to the examples, and a library that is not installed
 * there is left out.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Adapter } from '../../src/sources/outbox/adapters/adapter.ts'
import {
  drizzleAdapter,
  knexAdapter,
  kyselyAdapter,
  postgresAdapter,
  prismaAdapter,
} from '../../src/sources/outbox/adapters/libraries.ts'
import { createInbox, inboxSchema } from '../../src/sources/outbox/inbox.ts'
import { outboxSchema } from '../../src/sources/outbox/table/schema.ts'
import { createKey } from '../../src/sources/outbox/writing/keys.ts'
import { createOutbox } from '../../src/sources/outbox/writing/writer.ts'
import { type FreshStore, freshPostgres, freshSqlite } from '../world/stores.ts'
import { prepareExamples } from './examples-package.ts'

const EXAMPLES = new URL('../../examples/outbox/', import.meta.url)
const fromExamples = createRequire(new URL('package.json', EXAMPLES))

/** A library of the examples; what it exports is its own business. */
const load = async (name: string) => await import(pathToFileURL(fromExamples.resolve(name)).href)

// Which tests there are depends on what is installed.
await prepareExamples()

function isInstalled(name: string): boolean {
  try {
    fromExamples.resolve(name)
    return true
  } catch {
    return false
  }
}

/** A pool has ended before its connections have; what the dropped database says to those is nobody's business. */
function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url })
  return pool.on('error', () => {})
}

/** A library that is connected to a database. */
interface Connected {
  readonly adapter: Adapter<never>
  /** Runs `work` in a transaction of the library; rolls back when it throws. */
  transaction<T>(work: (tx: never) => Promise<T>): Promise<T>
  /** What somebody may pass by mistake. */
  readonly noTransaction: unknown
  close(): Promise<void>
}

interface Library {
  readonly name: string
  readonly needs: readonly string[]
  readonly dialect: 'postgres' | 'sqlite'
  connect(url: string): Promise<Connected>
}

const LIBRARIES: readonly Library[] = [
  {
    name: 'postgres.js',
    needs: ['postgres'],
    dialect: 'postgres',
    async connect(url) {
      const { default: postgres } = await load('postgres')
      const sql = postgres(url, { transform: postgres.camel, onnotice: () => {} })
      return {
        adapter: postgresAdapter(),
        transaction: (work) => sql.begin(work),
        noTransaction: sql,
        close: () => sql.end(),
      }
    },
  },
  {
    name: 'Kysely on PostgreSQL',
    needs: ['kysely'],
    dialect: 'postgres',
    async connect(url) {
      const { Kysely, PostgresDialect, CamelCasePlugin } = await load('kysely')
      const dialect = new PostgresDialect({ pool: poolOf(url) })
      const db = new Kysely({ dialect, plugins: [new CamelCasePlugin()] })
      return {
        adapter: kyselyAdapter(),
        transaction: (work) => db.transaction().execute(work),
        noTransaction: db,
        close: () => db.destroy(),
      }
    },
  },
  {
    name: 'Kysely on SQLite',
    needs: ['kysely'],
    dialect: 'sqlite',
    async connect(url) {
      const { Kysely, SqliteDialect } = await load('kysely')
      const file = new DatabaseSync(url.slice('sqlite:'.length))
      const database = {
        close: () => file.close(),
        prepare: (text: string) => {
          const statement = file.prepare(text)
          return {
            reader: statement.columns().length > 0,
            all: (values: never[]) => statement.all(...values),
            run: (values: never[]) => statement.run(...values),
          }
        },
      }
      const db = new Kysely({ dialect: new SqliteDialect({ database }) })
      return {
        adapter: kyselyAdapter('sqlite'),
        transaction: (work) => db.transaction().execute(work),
        noTransaction: db,
        close: () => db.destroy(),
      }
    },
  },
  {
    name: 'Drizzle with pg',
    needs: ['drizzle-orm', 'drizzle-orm/node-postgres'],
    dialect: 'postgres',
    async connect(url) {
      const { sql } = await load('drizzle-orm')
      const { drizzle } = await load('drizzle-orm/node-postgres')
      const client = poolOf(url)
      const db = drizzle({ client })
      return {
        adapter: drizzleAdapter(sql),
        transaction: (work) => db.transaction(work),
        noTransaction: db,
        close: () => client.end(),
      }
    },
  },
  {
    name: 'Drizzle with postgres.js',
    needs: ['drizzle-orm', 'drizzle-orm/postgres-js', 'postgres'],
    dialect: 'postgres',
    async connect(url) {
      const { sql } = await load('drizzle-orm')
      const { drizzle } = await load('drizzle-orm/postgres-js')
      const { default: postgres } = await load('postgres')
      const client = postgres(url, { onnotice: () => {} })
      const db = drizzle({ client })
      return {
        adapter: drizzleAdapter(sql),
        transaction: (work) => db.transaction(work),
        noTransaction: db,
        close: () => client.end(),
      }
    },
  },
  {
    name: 'Drizzle on SQLite',
    needs: ['drizzle-orm', 'drizzle-orm/sqlite-proxy'],
    dialect: 'sqlite',
    async connect(url) {
      const { sql } = await load('drizzle-orm')
      const { drizzle } = await load('drizzle-orm/sqlite-proxy')
      const file = new DatabaseSync(url.slice('sqlite:'.length))
      const db = drizzle(async (text: string, values: never[]) => ({
        rows: file.prepare(text).all(...values),
      }))
      return {
        adapter: drizzleAdapter(sql, 'sqlite'),
        transaction: (work) => db.transaction(work),
        noTransaction: db,
        close: async () => file.close(),
      }
    },
  },
  {
    name: 'Knex',
    needs: ['knex'],
    dialect: 'postgres',
    async connect(url) {
      const { default: createKnex } = await load('knex')
      const knex = createKnex({ client: 'pg', connection: url })
      return {
        adapter: knexAdapter(),
        transaction: (work) => knex.transaction(work),
        noTransaction: knex,
        close: () => knex.destroy(),
      }
    },
  },
  {
    name: 'Prisma',
    needs: ['@prisma/client', '@prisma/adapter-pg', './generated/client.ts'],
    dialect: 'postgres',
    async connect(url) {
      const { PrismaPg } = await load('@prisma/adapter-pg')
      const { PrismaClient } = await import(new URL('generated/client.ts', EXAMPLES).href)
      const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
      return {
        adapter: prismaAdapter(),
        transaction: (work) => prisma.$transaction(work),
        noTransaction: prisma,
        close: () => prisma.$disconnect(),
      }
    },
  },
]

/** As awkward as a name can be for whoever looks for parameters in a statement. */
const TABLE = 'out $1 ?box'
const KEY = createKey('shop', 'order', '17', 'placed')
const MESSAGE = { tenantId: 'shop', eventType: 'OrderPlaced', payload: { id: 17 } }
const FULL = {
  ...MESSAGE,
  payload: new Uint8Array([0, 255, 39, 34]),
  orderingKey: `o'"?$1`,
  headers: { trace: 'ä?"' },
  correlationId: '[1,2]',
}

const present = ({ needs }: Library): boolean =>
  needs.every((name) => (name.startsWith('./') ? existsSync(new URL(name, EXAMPLES)) : isInstalled(name)))

for (const library of LIBRARIES) {
  describe.skipIf(!present(library))(`an outbox through ${library.name}`, () => checkLibrary(library))
}

function checkLibrary(library: Library): void {
  let store: FreshStore
  let connected: Connected
  const options = { table: TABLE }
  beforeAll(async () => {
    store = await (library.dialect === 'postgres' ? freshPostgres() : freshSqlite())
    await query(`${outboxSchema(library.dialect, options)} ${inboxSchema(library.dialect)}`)
    connected = await library.connect(store.url)
  })
  afterAll(async () => {
    await connected.close()
    if (library.dialect === 'postgres') await waitForLast()
    await store.dispose()
  })

  /** Libraries say that they are closed a little before their connections are. */
  async function waitForLast(): Promise<void> {
    const others = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
    while ((await query(others)).length > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  async function query(text: string): Promise<readonly Record<string, unknown>[]> {
    if (library.dialect === 'postgres') {
      const client = new pg.Client({ connectionString: store.url })
      await client.connect()
      const { rows } = await client.query(text)
      await client.end()
      return rows
    }
    const file = new DatabaseSync(store.url.slice('sqlite:'.length))
    if (text.startsWith('SELECT')) return file.prepare(text).all()
    file.exec(text)
    file.close()
    return []
  }

  it('adds messages, one or many, with all that they have', async () => {
    const outbox = createOutbox({ adapter: connected.adapter, ...options })
    const added = await connected.transaction(async (tx) => [
      await outbox.add(tx, MESSAGE),
      await outbox.add(tx, { ...FULL, key: KEY }),
      ...(await outbox.addMany(tx, [MESSAGE, FULL, { ...MESSAGE, key: KEY }])),
      ...(await outbox.addMany(tx, Array(600).fill(FULL))),
    ])
    const rows = await query(`SELECT * FROM "${TABLE}" ORDER BY created_at, id`)
    expect(rows).toHaveLength(604)
    expect(added.filter(({ alreadyExisted }) => !alreadyExisted).map(({ id }) => id)).toEqual(
      rows.map(({ id }) => String(id)),
    )
    expect(added[4]).toEqual({ id: added[1]?.id, idempotencyKey: KEY, alreadyExisted: true, conflict: true })
    for (const row of [rows[1], rows[3], rows.at(-1)]) {
      if (row === undefined) throw new Error('there is no row')
      expect(row).toMatchObject({ ordering_key: FULL.orderingKey, correlation_id: '[1,2]', retry_count: 0 })
      expect([...(row.payload as Uint8Array)]).toEqual([0, 255, 39, 34])
      const { headers } = row
      expect(typeof headers === 'string' ? JSON.parse(headers) : headers).toEqual(FULL.headers)
    }
    expect(rows[0]).toMatchObject({ ordering_key: null, headers: null, correlation_id: null })
  })

  it('is part of the transaction', async () => {
    const outbox = createOutbox({ adapter: connected.adapter, ...options })
    const before = await query(`SELECT id FROM "${TABLE}"`)
    const failing = connected.transaction(async (tx) => {
      await outbox.add(tx, MESSAGE)
      throw new Error('no order')
    })
    await expect(failing).rejects.toThrow('no order')
    expect(await query(`SELECT id FROM "${TABLE}"`)).toEqual(before)
  })

  it('refuses what is no transaction', async () => {
    const outbox = createOutbox({ adapter: connected.adapter, ...options })
    await expect(outbox.add(connected.noTransaction as never, MESSAGE)).rejects.toThrow(
      'option tx is invalid; it is',
    )
  })

  it('lets a receiver do its work once', async () => {
    const inbox = createInbox({ adapter: connected.adapter })
    const receive = () =>
      connected.transaction((tx) => inbox.once(tx, { consumer: 'c', key: KEY }, () => 'done'))
    expect(await receive()).toEqual({ ran: true, result: 'done' })
    expect(await receive()).toEqual({ ran: false })
    expect(await connected.transaction((tx) => inbox.forget(tx))).toBe(0)
  })
}
