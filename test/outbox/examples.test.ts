/** The examples of docs/outbox.md: each is run as its reader would run it, against a database of its own. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { barePostgres, freshSqlite } from '../world/stores.ts'
import { prepareExamples, run, skipWithoutLibraries } from './examples-package.ts'
import { codeBlocks } from './guide.ts'

/** What the guide says that they print. */
const PRINTED = codeBlocks.find(({ language }) => language === 'text')?.code

/** What lies in the database afterwards. */
const COUNT = `SELECT (SELECT count(*) FROM orders) AS orders, count(*) AS messages, count(processed_at) AS processed
  FROM outbox_messages`
const COUNTED = { orders: 1, messages: 1, processed: 1 }

const ON_POSTGRES = ['pg', 'postgres', 'kysely', 'drizzle', 'prisma', 'knex']

let missing: string | null

beforeAll(async () => {
  missing = await prepareExamples()
  if (missing !== null) console.warn(`examples/outbox cannot be installed, its tests are skipped: ${missing}`)
})

async function runExample(name: string, databaseUrl: string): Promise<string> {
  const { code, output } = await run(process.execPath, ['--conditions=bartleby-source', `${name}.ts`], {
    env: { DATABASE_URL: databaseUrl },
  })
  expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' })
  return output
}

describe('an example of the outbox', () => {
  for (const name of ON_POSTGRES) {
    it(`delivers what was committed, once, and nothing else, with ${name}`, async (test) => {
      skipWithoutLibraries(test, missing)
      const store = await barePostgres()
      try {
        expect(await runExample(name, store.url)).toBe(PRINTED)
        expect(await countIn(store.url)).toEqual(COUNTED)
      } finally {
        await store.dispose()
      }
    })
  }

  it('does so with node:sqlite', async (test) => {
    skipWithoutLibraries(test, missing)
    const store = await freshSqlite()
    try {
      expect(await runExample('sqlite', store.url)).toBe(PRINTED)
      const database = new DatabaseSync(store.url.replace('sqlite:', ''))
      expect({ ...database.prepare(COUNT).get() }).toEqual(COUNTED)
      database.close()
    } finally {
      await store.dispose()
    }
  })
})

async function countIn(url: string): Promise<Record<string, number>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<Record<string, string>>(COUNT)
    return Object.fromEntries(Object.entries(rows[0] ?? {}).map(([name, count]) => [name, Number(count)]))
  } finally {
    await client.end()
  }
}

describe('the examples of the outbox', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it('are skipped where their libraries cannot be had, and fail on a build machine', () => {
    const skip = vi.fn<() => never>()
    vi.stubEnv('CI', '')
    skipWithoutLibraries({ skip }, 'npm ci: ENOTFOUND')
    const why = 'the libraries of examples/outbox cannot be installed: npm ci: ENOTFOUND'
    expect(skip).toHaveBeenCalledExactlyOnceWith(why)
    vi.stubEnv('CI', 'true')
    expect(() => skipWithoutLibraries({ skip }, 'npm ci: ENOTFOUND')).toThrow(why)
  })

  it('have the types of the libraries that they use', async (test) => {
    skipWithoutLibraries(test, missing)
    expect(await run('tsc', ['-p', '.'])).toEqual({ code: 0, output: '' })
  })
})
