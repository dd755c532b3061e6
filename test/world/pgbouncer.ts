/** Debian's PgBouncer in transaction mode, with its own defaults otherwise, between a test and PostgreSQL. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { vi } from 'vitest'
import { PATIENCE_MS } from './limits.ts'
import type { Pooler } from './pooler.ts'
import { freePort, unprivilegedUser } from './postgres.ts'

/** Fewer than there are clients: each transaction may get another one. */
const CONNECTIONS = 3

/** Starts the program at `path` in front of the server of `url`, for all of its databases. */
export async function startPgBouncer(path: string, url: string): Promise<Pooler> {
  const target = new URL(url)
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-pgbouncer-'))
  const port = await freePort()
  const users = join(folder, 'users.txt')
  const settings = join(folder, 'pgbouncer.ini')
  await writeFile(users, `"${target.username}" "${target.password}"\n`)
  await writeFile(
    settings,
    `[databases]
* = host=${target.hostname} port=${target.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${CONNECTIONS}
`,
  )
  const user = unprivilegedUser()
  if (user.uid !== undefined && user.gid !== undefined)
    for (const file of [folder, users, settings]) await chown(file, user.uid, user.gid)
  const bouncer = spawn(path, [settings], { ...user, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(bouncer, 'exit')
  let log = ''
  bouncer.stderr.on('data', (chunk: Buffer) => {
    if (log.length < 10_000) log += chunk
  })
  const pooled = new URL(url)
  pooled.host = `127.0.0.1:${port}`
  const close = async () => {
    bouncer.kill()
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await answers(pooled.href)
  } catch (error) {
    await close()
    throw new Error(`PgBouncer does not answer: ${log}`, { cause: error })
  }
  return { url: pooled.href, close }
}

/** Waits until somebody can sign in. */
const answers = (url: string): Promise<void> =>
  vi.waitFor(
    async () => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.end()
    },
    { timeout: PATIENCE_MS, interval: 50 },
  )
