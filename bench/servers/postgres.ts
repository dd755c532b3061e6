/** A PostgreSQL of the benchmark's own: durable, and set the same for every system. */
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres as startServer } from '../../test/world/postgres.ts'

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

/** Starts it with its files below `folder`. */
export async function startPostgres(folder: string, flags: ServerFlags): Promise<PostgresServer> {
  const { bin } = flags
  const server = await startServer({
    folder,
    ...(bin !== undefined && { binaries: { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') } }),
    settings: { ...settings, ...(flags.jit !== undefined && { jit: flags.jit }) },
  })
  const address = (database: string): string => {
    const url = new URL(server.url)
    url.pathname = `/${database}`
    return url.href
  }
  const admin = new pg.Client({ connectionString: server.url })
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
    await server.stop()
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
      await server.stop()
    },
  }
}
