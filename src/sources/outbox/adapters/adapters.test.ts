import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { query } from '../../../../test/world/postgres.ts'
import { type FreshStore, freshPostgres } from '../../../../test/world/stores.ts'
import type { NewMessage } from '../table/message.ts'
import { outboxSchema } from '../table/schema.ts'
import { createOutbox } from '../writing/writer.ts'
import { cutAtParameters } from './adapter.ts'
import {
  drizzleAdapter,
  knexAdapter,
  kyselyAdapter,
  postgresAdapter,
  prismaAdapter,
  sqliteAdapter,
} from './libraries.ts'
import { type PgAdapterOptions, type PgClientLike, pgAdapter } from './pg.ts'

const MESSAGE = { tenantId: 't', eventType: 'e', payload: {} } satisfies NewMessage

describe('the adapter of pg', () => {
  let store: FreshStore
  beforeAll(async () => {
    store = await freshPostgres()
    await query(store.url, outboxSchema('postgres'))
  })
  afterAll(() => store.dispose())

  /** How many statements were prepared by adding two messages on a new connection. */
  const preparedWith = async (
    options?: PgAdapterOptions,
    through: (client: pg.Client) => PgClientLike = (client) => client,
  ) => {
    const client = new pg.Client({ connectionString: store.url })
    await client.connect()
    await client.query('BEGIN')
    const outbox = createOutbox({ adapter: pgAdapter(options) })
    await outbox.add(through(client), MESSAGE)
    await outbox.add(through(client), MESSAGE)
    await client.query('COMMIT')
    const { rows } = await client.query(
      `SELECT count(*) AS count FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO %'`,
    )
    await client.end()
    return Number(rows[0].count)
  }

  it('prepares its statements on a connection to the server', async () => {
    expect(await preparedWith()).toBe(1)
  })

  it('prepares nothing behind a pooler, where the next statement may meet another connection', async () => {
    // What a pooler tells its clients is a number of its own.
    const behindPooler = (client: pg.Client): PgClientLike & { readonly processID: number } => ({
      processID: 1,
      query: (asked) => client.query(asked),
    })
    expect(await preparedWith({}, behindPooler)).toBe(0)
  })

  it('does as it is told', async () => {
    expect(await preparedWith({ prepare: false })).toBe(0)
    expect(await preparedWith({ prepare: true })).toBe(1)
    // Wrong on purpose.
    const wrong = { prepare: 'yes' } as unknown as PgAdapterOptions
    expect(() => pgAdapter(wrong)).toThrow('option prepare is invalid; it is neither true nor false')
  })

  describe('given a client without a transaction', () => {
    let pool: pg.Pool
    beforeAll(() => {
      pool = new pg.Pool({ connectionString: store.url })
    })
    afterAll(() => pool.end())

    /** How many messages were added meanwhile. */
    const addedBy = async (act: (client: pg.PoolClient) => Promise<void>): Promise<number> => {
      const count = async () =>
        Number((await pool.query('SELECT count(*) FROM outbox_messages')).rows[0].count)
      const client = await pool.connect()
      try {
        const before = await count()
        await act(client)
        return (await count()) - before
      } finally {
        client.release()
      }
    }

    it.each([{}, { prepare: true }, { prepare: false }])('refuses it, with %o', async (options) => {
      const outbox = createOutbox({ adapter: pgAdapter(options) })
      const refusal = /option tx is invalid; no transaction is begun on this client; run BEGIN first/
      const added = await addedBy(async (client) => {
        await expect(outbox.add(client, MESSAGE)).rejects.toThrow(refusal)
        await client.query('BEGIN')
        await outbox.add(client, MESSAGE)
        await client.query('COMMIT')
        await expect(outbox.addMany(client, [MESSAGE])).rejects.toThrow(refusal)
      })
      expect(added).toBe(1)
    })

    it('waits for a BEGIN that nobody waited for', async () => {
      const added = await addedBy(async (client) => {
        const begun = client.query('BEGIN')
        await createOutbox({ adapter: pgAdapter() }).add(client, MESSAGE)
        await begun
        await client.query('ROLLBACK')
      })
      expect(added).toBe(0)
    })

    it('takes it where the driver does not tell', async () => {
      const added = await addedBy(async (client) => {
        const silent: PgClientLike = { query: (asked) => client.query(asked) }
        await createOutbox({ adapter: pgAdapter() }).add(silent, MESSAGE)
      })
      expect(added).toBe(1)
    })
  })

  it('refuses a pool, and says what to pass', async () => {
    const pool = new pg.Pool({ connectionString: store.url })
    const outbox = createOutbox({ adapter: pgAdapter() })
    // @ts-expect-error The types refuse it too.
    await expect(outbox.add(pool, MESSAGE)).rejects.toThrow(/option tx is invalid; it is a pool.*connect\(\)/)
    await pool.end()
  })
})

describe('the adapter of node:sqlite', () => {
  it('refuses a connection without a transaction', async () => {
    const file = new DatabaseSync(':memory:')
    file.exec(outboxSchema('sqlite'))
    const outbox = createOutbox({ adapter: sqliteAdapter() })
    await expect(outbox.add(file, MESSAGE)).rejects.toThrow(/option tx is invalid; no transaction is begun/)
    file.exec('BEGIN')
    expect(await outbox.add(file, MESSAGE)).toMatchObject({ id: '1' })
    file.close()
  })
})

describe('every adapter', () => {
  const sql = { raw: String, param: String, join: String }
  it.each([
    ['pgAdapter', pgAdapter(), /not a client of pg/],
    ['postgresAdapter', postgresAdapter(), /not a transaction of postgres\.js/],
    ['kyselyAdapter', kyselyAdapter(), /not a transaction of Kysely/],
    ['drizzleAdapter', drizzleAdapter(sql), /not a transaction of Drizzle on postgres/],
    ['prismaAdapter', prismaAdapter(), /not a transaction of Prisma/],
    ['knexAdapter', knexAdapter(), /not a transaction of Knex/],
    ['sqliteAdapter', sqliteAdapter(), /not a DatabaseSync/],
  ])('says what it wants when it gets something else: %s', async (_, adapter, reason) => {
    for (const wrong of [undefined, null, 'tx', {}]) {
      await expect(adapter.run(wrong as never, 'SELECT 1', [])).rejects.toThrow(reason)
      await expect(adapter.run(wrong as never, 'SELECT 1', [])).rejects.toMatchObject({
        code: 'outbox_option_invalid',
      })
    }
  })

  it('names what is wrong with its own options', () => {
    expect(() => kyselyAdapter('mysql' as never)).toThrow(
      "option dialect is invalid; 'mysql' is none of postgres, sqlite",
    )
    expect(() => drizzleAdapter(undefined as never)).toThrow('option sql is invalid')
  })
})

describe('a statement that is cut at its parameters', () => {
  it('keeps what is quoted', () => {
    expect(cutAtParameters(`SELECT $2, "$1""?", '$1 ?''', $1::text FROM t WHERE a = $2`)).toEqual({
      texts: ['SELECT ', `, "$1""?", '$1 ?''', `, '::text FROM t WHERE a = ', ''],
      places: [1, 0, 1],
    })
    expect(cutAtParameters(`SELECT ?, "?", ?`)).toEqual({
      texts: ['SELECT ', ', "?", ', ''],
      places: [0, 1],
    })
    expect(cutAtParameters('SELECT 1')).toEqual({ texts: ['SELECT 1'], places: [] })
  })
})
