/** Bartleby embedded: the office opened in the process that produces and consumes. */
import { join } from 'node:path'
import { Office } from '../../src/index.ts'
import type { Surroundings, System } from '../system.ts'
import { leasingSystem } from './leasing.ts'

export const openOnPostgres = ({ postgresUrl }: Surroundings): Promise<System> => open(postgresUrl)

export const openOnSqlite = ({ folder }: Surroundings): Promise<System> =>
  open(`sqlite:${join(folder, 'bartleby.db')}`)

async function open(store: string): Promise<System> {
  const office = await Office.open({ store })
  const { queues } = office
  return leasingSystem(
    {
      produce: (request) => queues.produce(request),
      lease: (queueName, clientId, batchSize, signal) =>
        queues.lease({ queueName, clientId, batchSize }, signal),
      complete: (request) => queues.complete(request),
      retry: (request) => queues.retry(request),
      create: (settings) => queues.create(settings),
      stats: (queueName) => queues.stats(queueName),
    },
    [],
    () => office.close(),
  )
}
