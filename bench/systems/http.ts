/** Bartleby served: the server in a process of its own, called through the published client with keep-alive. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { Pool } from 'undici'
import { QueueClient } from '../../src/client/index.ts'
import { freePort } from '../servers/port.ts'
import type { Surroundings, System } from '../system.ts'
import { leasingSystem, until } from './leasing.ts'

const program = join(import.meta.dirname, '../../bin/bartleby.js')
const startTimeoutMs = 20_000

export const openOnPostgres = ({ postgresUrl }: Surroundings): Promise<System> => open(postgresUrl)

export const openOnSqlite = ({ folder }: Surroundings): Promise<System> =>
  open(`sqlite:${join(folder, 'bartleby.db')}`)

async function open(store: string): Promise<System> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const server = spawn(process.execPath, [program, 'serve', '--port', String(port), '--store', store], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  // The server ends with this process, also when a run fails.
  process.once('exit', () => server.kill('SIGTERM'))
  const exited = new Promise((resolve) => server.once('exit', resolve))
  await until('a healthy server', startTimeoutMs, async () => (await fetch(`${url}/health`)).ok)

  const pool = new Pool(url, { connections: 32 })
  const client = new QueueClient({
    url,
    // The platform's fetch costs more per call than the server does; the client takes another one.
    fetch: async (address, { method, headers, body, signal }) => {
      const path = address.slice(url.length)
      const reply = await pool.request({
        path,
        method: method === 'POST' ? 'POST' : 'GET',
        headers,
        body,
        signal,
      })
      return { status: reply.statusCode, text: () => reply.body.text() }
    },
  })
  return leasingSystem(
    {
      produce: (request) => client.produce(request),
      lease: (queueName, clientId, batchSize, signal) =>
        client.lease({ queueName, clientId, batchSize }, { signal }),
      complete: (request) => client.complete(request),
      retry: (request) => client.retry(request),
      create: (settings) => client.create(settings),
      stats: (queueName) => client.stats(queueName),
    },
    server.pid === undefined ? [] : [server.pid],
    async () => {
      await pool.close()
      server.kill('SIGTERM')
      await exited
    },
  )
}
