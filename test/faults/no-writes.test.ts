/** A store that answers and takes no writes: the server says that it is not ready, until a write succeeds again. */
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import pino from 'pino'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { captureBody } from '../conformance/engines/desk.ts'
import { query } from '../world/postgres.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { barePostgres, type FreshStore, freshPostgres, stores } from '../world/stores.ts'

const readyStatus = async ({ url }: ServerHere): Promise<number> =>
  (await fetch(`${url}/health/ready`)).status

const captureStatus = async ({ url }: ServerHere): Promise<number> => {
  const answer = await fetch(`${url}/api/dlq`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(captureBody()),
  })
  return answer.status
}

describe.each(stores)('a store on $name that refuses every write', ({ fresh }) => {
  let store: FreshStore
  let server: ServerHere
  beforeEach(async () => {
    store = await fresh()
    server = await startServer({ store: store.url })
  })
  afterEach(async () => {
    await server?.stop()
    await store?.dispose()
  })

  it('makes the server unready until a write succeeds again', async () => {
    expect(await readyStatus(server)).toBe(200)
    await store.refuseWrites()
    expect(await captureStatus(server)).toBeGreaterThanOrEqual(500)
    expect(await readyStatus(server)).toBe(503)
    expect((await fetch(`${server.url}/health`)).status).toBe(503)
    expect((await fetch(`${server.url}/health/live`)).status).toBe(200)
    expect(await readyStatus(server)).toBe(503)
    await store.acceptWrites()
    // Nobody but the probe writes.
    expect(await readyStatus(server)).toBe(200)
    expect(await captureStatus(server)).toBe(201)
  })
})

describe('a PostgreSQL that became read-only', () => {
  it('makes the server unready, and calls are told to come again', async () => {
    const store = await freshPostgres()
    const database = new URL(store.url).pathname.slice(1)
    const setReadOnly = async (value: 'on' | 'off') => {
      await query(
        inject('postgresUrl'),
        `ALTER DATABASE ${database} SET default_transaction_read_only = ${value}`,
      )
      await endConnections(store.url)
    }
    const server = await startServer({ store: store.url })
    try {
      await setReadOnly('on')
      await expect.poll(() => captureStatus(server)).toBe(503)
      expect(await readyStatus(server)).toBe(503)
      await setReadOnly('off')
      await expect.poll(() => readyStatus(server)).toBe(200)
    } finally {
      await server.stop()
      await store.dispose()
    }
  })
})

/** Settings of a database hold for new connections. */
const endConnections = (url: string): Promise<void> =>
  query(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'bartleby%'
    AND datname = current_database()`,
  )

describe('a PostgreSQL that is too busy at the first start', () => {
  interface Line {
    readonly level: number
    readonly msg: string
    readonly err?: object
  }

  /** A log whose lines are kept. */
  const keptLog = () => {
    const lines: Line[] = []
    return { lines, log: pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) }) }
  }
  const troublesIn = (lines: readonly Line[]) => lines.filter(({ level }) => level >= 40)

  it('and empty is waited for with one line, and the server is ready', async () => {
    const store = await barePostgres()
    const { lines, log } = keptLog()
    const locker = new pg.Client({ connectionString: store.url })
    await locker.connect()
    await locker.query('BEGIN; LOCK TABLE pg_catalog.pg_class IN SHARE MODE')
    const starting = startServer({ store: store.url, testApi: false, log })
    let server: ServerHere | undefined
    try {
      await expect.poll(() => lines.length).toBeGreaterThan(0)
      await pause(1_000)
      expect(lines.map(({ msg }) => msg)).toEqual([
        'the schema of the store is not ready: there is much to do, or others lock it; waiting',
      ])
      await locker.query('ROLLBACK')
      server = await starting
      expect(lines[1]?.msg).toBe('the schema of the store is ready')
      expect(await readyStatus(server)).toBe(200)
      expect(await captureStatus(server)).toBe(201)
      expect(troublesIn(lines)).toHaveLength(1)
    } finally {
      await locker.end()
      await (server ?? (await starting)).stop()
      await store.dispose()
    }
  })

  it('is waited for with one line, and the server is ready', async () => {
    const store = await freshPostgres()
    const { lines, log } = keptLog()
    const locker = new pg.Client({ connectionString: store.url })
    await locker.connect()
    await locker.query(`BEGIN; LOCK TABLE bartleby.letter_changes, bartleby.webhook_deltas,
      bartleby.redrive_outcome_deltas, bartleby.letters_to_file, bartleby.redrives, bartleby.count_folds, bartleby.items`)
    // The real clock: its rounds come by themselves.
    const server = await startServer({ store: `${store.url}?query_timeout=700`, testApi: false, log })
    try {
      await expect.poll(() => lines.length).toBeGreaterThan(0)
      await pause(3_000)
      const troubles = troublesIn(lines)
      expect(troubles.map(({ msg }) => msg)).toEqual(['the store cannot be used now; waiting for it'])
      expect(troubles.filter(({ err }) => err !== undefined)).toEqual([])
      await locker.query('ROLLBACK')
      await expect.poll(() => lines.at(-1)?.msg).toBe('the store answers again')
      expect(await readyStatus(server)).toBe(200)
    } finally {
      await server.stop()
      await locker.end()
      await store.dispose()
    }
  })
})
