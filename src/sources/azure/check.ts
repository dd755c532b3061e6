/** What this office may and may not do with an account, in words. Writes an entity of its own kind and removes it; letters stay as they are. */
import { randomUUID } from 'node:crypto'
import type { TableClient } from '@azure/data-tables'
import { SystemClock } from '../../core/system-clock.ts'
import type { AzureTables } from '../../outgoing/azure/keys.ts'
import { Account, type AzureTrouble, troubleOf } from './account.ts'

export interface AzureCheck {
  readonly subject: string
  readonly verdict: 'fine' | 'missing' | 'unknown'
  readonly message: string
}

/** The partition of the entity that is written and removed; no engine can be called that. */
const PROBE = '~bartleby-check'

export async function checkAzure(settings: AzureTables): Promise<readonly AzureCheck[]> {
  const account = await Account.open(settings, new SystemClock())
  const { dlqTableName, historyTableName, poison, retention, engines } = settings
  const { dlq, history } = account.tables
  const readable = await tried(`table ${dlqTableName}`, 'its letters can be read', () =>
    firstOf(account, dlq),
  )
  const checks = [
    readable,
    ...(readable.verdict === 'fine'
      ? [
          await tried(`table ${dlqTableName}`, 'acts on letters can be written to it', () =>
            probe(account, dlq),
          ),
        ]
      : []),
    await tried(`table ${historyTableName}`, 'what engines did can be read, and sends confirmed by it', () =>
      firstOf(account, history),
    ),
    await tried('all queues', 'the account lists its queues', () =>
      account.call((abortSignal) =>
        account.tables.queues.listQueues({ abortSignal }).byPage({ maxPageSize: 1 }).next(),
      ),
    ),
  ]
  for (const queue of await queuesOf(account, dlq))
    checks.push(
      await tried(`queue ${queue}`, 'letters can go back there', () =>
        account.call((abortSignal) => account.queue(queue).getProperties({ abortSignal })),
      ),
    )
  for (const queue of poison)
    checks.push(
      await tried(`queue ${queue}`, 'its poisoned messages can be looked at', () =>
        account.call((abortSignal) => account.queue(queue).peekMessages({ abortSignal })),
      ),
    )
  checks.push(
    fine(
      'partitions',
      engines === undefined ? 'all partitions are taken in' : `taken in are ${engines.join(', ')}`,
    ),
    fine(
      'retention',
      retention === 'bartleby'
        ? `entities are removed here after ${settings.retentionDays} days`
        : 'entities are removed by others, never here (retention: bartleby changes that)',
    ),
  )
  return checks
}

const fine = (subject: string, message: string): AzureCheck => ({ subject, verdict: 'fine', message })

async function tried(subject: string, message: string, act: () => Promise<unknown>): Promise<AzureCheck> {
  try {
    await act()
    return fine(subject, message)
  } catch (error) {
    return { subject, ...verdictOf(troubleOf(error), message) }
  }
}

function verdictOf(trouble: AzureTrouble, wanted: string): Omit<AzureCheck, 'subject'> {
  switch (trouble.kind) {
    case 'gone':
      return { verdict: 'missing', message: `does not exist; once it does, ${wanted}` }
    case 'denied':
      return { verdict: 'missing', message: `this identity may not: ${wanted} (${trouble.message})` }
    case 'throttled':
    case 'away':
      return { verdict: 'unknown', message: `the account does not answer now (${trouble.message})` }
    default:
      return { verdict: 'missing', message: `refused: ${trouble.message}` }
  }
}

const firstOf = (account: Account, client: TableClient) =>
  account.call((abortSignal) => client.listEntities({ abortSignal }).byPage({ maxPageSize: 1 }).next())

async function probe(account: Account, client: TableClient): Promise<void> {
  const entity = {
    partitionKey: PROBE,
    rowKey: randomUUID(),
    Status: 'Resolved',
    ResolutionNotes: 'bartleby azure check',
  }
  await account.call((abortSignal) => client.createEntity(entity, { abortSignal }))
  await account.call((abortSignal) =>
    client.deleteEntity(entity.partitionKey, entity.rowKey, { abortSignal }),
  )
}

/** The queues that the first entities came from. */
async function queuesOf(account: Account, client: TableClient): Promise<readonly string[]> {
  try {
    const { value = [] } = await account.call((abortSignal) =>
      client
        .listEntities<{ OriginalQueue?: string }>({
          abortSignal,
          queryOptions: { select: ['OriginalQueue'] },
        })
        .byPage({ maxPageSize: 500 })
        .next(),
    )
    const names = (value as readonly { readonly OriginalQueue?: unknown }[]).map(
      ({ OriginalQueue }) => OriginalQueue,
    )
    return [
      ...new Set(
        names.filter((name): name is string => typeof name === 'string' && /^[a-z0-9-]{3,63}$/.test(name)),
      ),
    ].sort()
  } catch {
    return []
  }
}
