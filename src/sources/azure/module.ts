/** Azure: dead messages of engines whose unified tables and queues lie in a storage account. */
import type { TSchema } from 'typebox'
import type { OfficeParts, SourceModule } from '../source-module.ts'
import type { Azure } from './azure.ts'
import type { AzureFace } from './face.ts'
import { azureInvariants } from './invariants.ts'
import { AZURE, OPERATIONS } from './parts.ts'
import { azureMigration } from './schema.ts'
import { servedAzure } from './served.ts'
import { azureLetterSource } from './source.ts'

/** Configured as the tables of engines are: `engines.tables`. */
export const azureModule: SourceModule<typeof AZURE, TSchema, undefined, AzureFace> = {
  name: AZURE,
  title: 'Azure tables',
  kind: { sendsOutside: true, keepsRowKeys: true, operations: Object.values(OPERATIONS) },
  invariants: azureInvariants,
  migrations: [azureMigration],
  async open(parts) {
    const azure = await openAzure(parts)
    const { letters } = parts
    return {
      letters: azureLetterSource(() => azure),
      face: { azure },
      ...servedAzure(azure, letters),
      services: azure === null ? [] : [azure],
    }
  },
}

async function openAzure({
  store: { db },
  clock,
  plainLog: log,
  registers,
  engines,
  offers,
}: OfficeParts): Promise<Azure | null> {
  const { tables = null } = offers
  if (tables === null) return null
  // Loaded when it is used: most offices have no account.
  const { Azure } = await import('./azure.ts')
  return Azure.open({ db, clock, log, registers, engines, settings: tables })
}
