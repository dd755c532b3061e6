/** Bartleby served: the server in a process of its own, called through the published client with keep-alive. */
import { join } from 'node:path'
import { QueueClient } from '../../src/client/index.ts'
import { startBartleby } from '../servers/bartleby.ts'
import type { Surroundings, System } from '../system.ts'
import { leasingSystem } from './leasing.ts'

export const openOnPostgres = ({ postgresUrl }: Surroundings): Promise<System> => open(postgresUrl)

export const openOnSqlite = ({ folder }: Surroundings): Promise<System> =>
  open(`sqlite:${join(folder, 'bartleby.db')}`)

async function open(store: string): Promise<System> {
  const server = await startBartleby(store)
  const client = new QueueClient({ url: server.url, fetch: server.fetch })
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
    () => server.stop(),
  )
}
