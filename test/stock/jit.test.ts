/** PostgreSQL as it comes, with JIT on: nothing of ours may make it compile. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { captureBody } from '../conformance/engines/desk.ts'
import { describeDebianPostgres } from '../world/debian.ts'
import { sizeOf } from '../world/limits.ts'
import { createDatabase, type PostgresServer, query, type TestDatabase } from '../world/postgres.ts'
import { type ServerHere, startServer } from '../world/server.ts'

const IDLE_MS = sizeOf(6_000, 20_000)
const IDLE_LIMIT_S = sizeOf(0.2, 0.5)
const WARM_UP = 5
const CALLS = 15
/** Less than compiling one plan takes, and more than two calls of some milliseconds differ by on a busy machine. */
const COMPILED_MS = 10

describeDebianPostgres('a stock PostgreSQL, with JIT', (postgres) => {
  let server: PostgresServer
  let database: TestDatabase
  let office: ServerHere
  let watcher: pg.Client

  beforeAll(async () => {
    server = await postgres.start()
    database = await createDatabase(server.url)
    office = await startServer({ store: database.url, testApi: false })
    watcher = new pg.Client({ connectionString: server.url })
    await watcher.connect()
  })

  afterAll(async () => {
    await watcher?.end()
    await office?.stop()
    await server?.stop()
  })

  it('compiles plans that cost enough', async () => {
    const { rows } = await watcher.query<{ jit: boolean }>('SELECT pg_jit_available() AS jit')
    expect(rows[0]?.jit).toBe(true)
  })

  it('is left alone by an idle office', async () => {
    const { rows } = await watcher.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const main = statOf(rows[0]?.pid ?? 0).parent
    const before = cpuSecondsBelow(main)
    await pause(IDLE_MS)
    const used = cpuSecondsBelow(main) - before
    console.info(`CPU of an idle office's PostgreSQL in ${IDLE_MS / 1_000} s: ${used.toFixed(2)} s`)
    expect(used).toBeLessThan(IDLE_LIMIT_S)
  })

  it('answers single calls as fast as without JIT', async () => {
    const plain = await createDatabase(server.url)
    await query(server.url, `ALTER DATABASE ${plain.name} SET jit = off`)
    const other = await startServer({ store: plain.url, testApi: false })
    try {
      for (const [path, body] of SINGLE_CALLS) {
        const [stock, without] = await fastest([office.url, other.url], path, body)
        const call = `${body === undefined ? 'GET' : 'POST'} ${path}`
        console.info(`${call}: ${stock.toFixed(1)} ms with JIT on, ${without.toFixed(1)} ms with JIT off`)
        expect(stock, call).toBeLessThan(2 * without + COMPILED_MS)
      }
    } finally {
      await other.stop()
    }
  })
})

/** Calls of several parts, with a body where they write. */
const SINGLE_CALLS: readonly (readonly [path: string, body?: () => unknown])[] = [
  ['/api/dlq', captureBody],
  ['/api/dlq'],
  ['/api/counts'],
  ['/api/signatures'],
  ['/v1/queues.list', () => ({})],
]

/**
 * The fastest of some calls of two servers in turn, in milliseconds, after some to warm up: what is compiled for each call makes every
 * one slow, and what else the machine does only some.
 */
async function fastest(
  urls: readonly [string, string],
  path: string,
  body?: () => unknown,
): Promise<readonly [number, number]> {
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < WARM_UP + CALLS; round++) {
    for (const [at, url] of urls.entries()) {
      const startedAt = performance.now()
      const answer = await fetch(`${url}${path}`, requestOf(body?.()))
      await answer.arrayBuffer()
      expect(answer.ok, `${path}: ${answer.status}`).toBe(true)
      if (round >= WARM_UP) times[at]?.push(performance.now() - startedAt)
    }
  }
  return [Math.min(...times[0]), Math.min(...times[1])]
}

const requestOf = (body: unknown): RequestInit =>
  body === undefined
    ? {}
    : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }

interface ProcessStat {
  readonly parent: number
  /** Of itself, and of children that have ended. */
  readonly cpuSeconds: number
  readonly endedChildrenSeconds: number
}

const TICKS_PER_SECOND = 100

/** A line of /proc/<pid>/stat; the fields are counted behind the name, which may hold anything. */
function statOf(pid: number): ProcessStat {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const seconds = (...at: readonly number[]) =>
    at.reduce((sum, field) => sum + Number(fields[field]), 0) / TICKS_PER_SECOND
  return { parent: Number(fields[1]), cpuSeconds: seconds(11, 12), endedChildrenSeconds: seconds(13, 14) }
}

/** CPU time of a process and of all children that it has or had. */
function cpuSecondsBelow(main: number): number {
  const { cpuSeconds, endedChildrenSeconds } = statOf(main)
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = statOf(Number(name))
        return stat.parent === main ? [stat.cpuSeconds] : []
      } catch {
        // Ended since it was listed.
        return []
      }
    })
  return children.reduce((sum, child) => sum + child, cpuSeconds + endedChildrenSeconds)
}
