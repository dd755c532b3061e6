/**
 * Removes entities whose time is over, by the rules of the tables: Resolved by ResolvedAtUtc, Expired by the later of LastFailureAtUtc and
 * the expiry, history by CreatedAtUtc; Pending never. In transactions of one partition and at most a hundred entities, and only where the
 * office was told that it owns the tables.
 */
import type { TableClient, TransactionAction } from '@azure/data-tables'
import { type Instant, later } from '../../core/clock.ts'
import { Rounds } from '../../core/rounds.ts'
import { formatMicros } from '../../core/timestamp.ts'
import { sql } from '../../store/database.ts'
import { isTrouble } from './account.ts'
import { type RawEntity, type Stamped, sourceIdOf, stampOf } from './entity.ts'
import type { AzureParts } from './parts.ts'
import { entitiesNamed } from './register.ts'

const EVERY_US = 3_600_000_000n
const DAY_US = 86_400_000_000n
/** Azure takes no more in one transaction. */
const MOST = 100

/** Entities of letters that are pending, or that do not say yet what their letters do, whatever stands in the table. */
const readOpen = sql(
  'azure.openEntities',
  `SELECT source_id FROM bartleby.azure_entities AS entity WHERE source_id = ANY($1::text[])
     AND (is_current = 1 AND (SELECT status FROM bartleby.letters WHERE letters.id = entity.letter_id) = 0
       OR (SELECT 1 FROM bartleby.azure_writes AS due WHERE due.source_id = entity.source_id) IS NOT NULL)`,
)
const forget = sql(
  'azure.forgetEntities',
  'DELETE FROM bartleby.azure_entities WHERE source_id = ANY($1::text[]) AND (SELECT 1 FROM bartleby.letters WHERE letters.id = letter_id) IS NULL',
)

export const retentionRounds = (parts: AzureParts): Rounds =>
  new Rounds({
    ...{ name: 'azure.retention', clock: parts.clock, log: parts.log, everyUs: EVERY_US },
    act: (signal) => removeOld(parts, signal),
    trouble: 'azure: entities whose time is over could not be removed; it is tried again',
  })

async function removeOld(parts: AzureParts, signal: AbortSignal): Promise<void> {
  const { account, clock, settings, counters, log } = parts
  const before = later(clock.now(), -BigInt(settings.retentionDays) * DAY_US)
  const time = `datetime'${formatMicros(before)}'`
  const { dlq, history } = account.tables
  const removed =
    (await removeFrom(parts, dlq, `Status eq 'Resolved' and ResolvedAtUtc lt ${time}`, signal)) +
    // The last write to an entity is not before its expiry.
    (await removeFrom(parts, dlq, `Status eq 'Expired' and LastFailureAtUtc lt ${time}`, signal, before)) +
    (await removeFrom(parts, history, `CreatedAtUtc lt ${time}`, signal))
  counters.add('removed', removed)
  if (removed > 0)
    log.info({ removed, before: formatMicros(before) }, 'azure: entities whose time is over were removed')
}

async function removeFrom(
  parts: AzureParts,
  client: TableClient,
  filter: string,
  signal: AbortSignal,
  writtenBefore: Instant | null = null,
): Promise<number> {
  const { account } = parts
  let removed = 0
  let continuationToken: string | undefined
  do {
    let page: readonly RawEntity[] & { readonly continuationToken?: string }
    try {
      const { value } = await account.call(
        (abortSignal) =>
          client
            .listEntities<object>({
              ...{ disableTypeConversion: true, abortSignal },
              queryOptions: { filter, select: ['PartitionKey', 'RowKey', 'Timestamp'] },
            })
            .byPage({ maxPageSize: MOST, ...(continuationToken !== undefined && { continuationToken }) })
            .next(),
        signal,
      )
      // The client puts the token on the list.
      page = (value ?? []) as typeof page
    } catch (error) {
      if (isTrouble(error, 'gone')) return removed
      throw error
    }
    continuationToken = page.continuationToken
    const old = page
      .map(stampOf)
      .filter(({ writtenAt }) => writtenBefore === null || writtenAt < writtenBefore)
    const free = client === account.tables.dlq ? await notOpen(parts, old) : old
    for (const group of Map.groupBy(free, ({ partitionKey }) => partitionKey).values())
      removed += await removeGroup(parts, client, group)
  } while (continuationToken !== undefined && !signal.aborted)
  return removed
}

async function notOpen(
  { db, account, settings }: AzureParts,
  entities: readonly Stamped[],
): Promise<Stamped[]> {
  const idOf = (entity: Stamped) => sourceIdOf(account.called(settings.dlqTableName), entity)
  const ids = entities.map(idOf)
  const [open, known] = await db.session('azure.open', async (session) => [
    new Set((await session.rows<{ source_id: string }>(readOpen, ids)).map(({ source_id }) => source_id)),
    await entitiesNamed(session, ids),
  ])
  // What was written since it was read here has not been taken in yet.
  return entities.filter(
    (entity) => !open.has(idOf(entity)) && (known.get(idOf(entity))?.etag ?? entity.etag) === entity.etag,
  )
}

/** Removes entities of one partition, all or none. One that somebody changed meanwhile leaves the others for the next round. */
async function removeGroup(
  parts: AzureParts,
  client: TableClient,
  group: readonly Stamped[],
): Promise<number> {
  const { account, db, settings } = parts
  const actions = group.map(
    ({ partitionKey, rowKey }): TransactionAction => ['delete', { partitionKey, rowKey }],
  )
  try {
    await account.call(() => client.submitTransaction(actions))
  } catch (error) {
    if (isTrouble(error, 'changed', 'gone', 'refused')) return 0
    throw error
  }
  if (client === account.tables.dlq) {
    const ids = group.map((entity) => sourceIdOf(account.called(settings.dlqTableName), entity))
    await db.session('azure.forget', (session) => session.run(forget, ids))
  }
  return group.length
}
