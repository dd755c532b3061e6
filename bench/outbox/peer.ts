/**
 * pg-transactional-outbox, the published library that is nearest to ours: its polling listener, through its public
 * interface, on its own table, made by its own scripts. Its other listener follows the replication log, which needs a server
 * with `wal_level = logical`.
 *
 * It settles every message in a transaction of its own, and each fetch looks at all messages that wait, so it is
 * measured with few of them too.
 */
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import {
  DatabaseSetup,
  getDisabledLogger,
  initializePollingMessageListener,
  type PollingListenerConfig,
} from 'pg-transactional-outbox'
import type { Books } from './table.ts'

const TABLE = 'outbox'

const setup = {
  outboxOrInbox: 'outbox',
  database: 'bench',
  schema: 'public',
  table: TABLE,
  listenerRole: 'CURRENT_USER',
  nextMessagesSchema: 'public',
  nextMessagesName: 'next_outbox_messages',
} as const

/** As it comes, and as fast as it goes. */
export type PeerSettings = 'default' | 'best'

const BATCH = 500
/** Fetches are dear: the next one is made when so few are left of the last. */
const LOW = 100
const CONNECTIONS = 20

const needed = { dbSchema: 'public', dbTable: TABLE, nextMessagesFunctionName: 'next_outbox_messages' }

const configOf = (url: string, settings: PeerSettings): PollingListenerConfig =>
  settings === 'default'
    ? {
        outboxOrInbox: 'outbox',
        dbListenerConfig: { connectionString: url },
        settings: { ...needed, enableMaxAttemptsProtection: true, enablePoisonousMessageProtection: true },
      }
    : {
        outboxOrInbox: 'outbox',
        // It makes a pool of these settings, and passes on what a pool knows.
        dbListenerConfig: Object.assign({ connectionString: url }, { max: CONNECTIONS }),
        settings: {
          ...needed,
          enableMaxAttemptsProtection: false,
          enablePoisonousMessageProtection: false,
          messageCleanupIntervalInMs: 0,
          nextMessagesBatchSize: BATCH,
          nextMessagesLockInMs: 60_000,
          nextMessagesPollingIntervalInMs: 10,
        },
      }

/** Asks for a batch when few are left. It is asked again at once while there is no room, so it must yield. */
async function wholeBatches(inProgress: number): Promise<number> {
  if (inProgress <= LOW) return BATCH
  await setImmediate()
  return inProgress
}

export interface Peer {
  load(count: number): Promise<void>
  /** Listens; what it returns ends that. */
  listen(handle: () => Promise<void>): () => Promise<void>
  hasPending(): Promise<boolean>
  counts(): Promise<Books>
  close(): Promise<void>
}

export async function openPeer(url: string, settings: PeerSettings): Promise<Peer> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    [
      DatabaseSetup.dropAndCreateTable(setup),
      DatabaseSetup.createPollingFunction(setup),
      DatabaseSetup.setupPollingIndexes(setup),
    ].join('\n'),
  )
  return {
    async load(count) {
      // As its own function writes them: one after the other unless it is told otherwise.
      const concurrency = settings === 'default' ? 'sequential' : 'parallel'
      await client.query(
        `INSERT INTO ${TABLE} (id, aggregate_type, aggregate_id, message_type, concurrency, payload, created_at)
         SELECT gen_random_uuid(), 'order', n::text, 'order.created', '${concurrency}',
           jsonb_build_object('n', n, 'text', 'a dead letter office for the messages that nobody could process, counted exactly and never lost; a dead'),
           now() - interval '1 hour' + n * interval '1 microsecond'
         FROM generate_series(1, ${count}) AS series (n)`,
      )
      await client.query('VACUUM ANALYZE')
    },
    listen(handle) {
      const [shutdown] = initializePollingMessageListener(
        configOf(url, settings),
        { handle },
        getDisabledLogger(),
        settings === 'best' ? { batchSizeStrategy: wholeBatches } : {},
      )
      return shutdown
    },
    async hasPending() {
      const text = `SELECT 1 FROM ${TABLE} WHERE processed_at IS NULL AND abandoned_at IS NULL LIMIT 1`
      return (await client.query(text)).rows.length > 0
    },
    async counts() {
      const { rows } = await client.query(
        `SELECT count(*) AS all, count(processed_at) AS processed, count(abandoned_at) AS dead,
           count(*) FILTER (WHERE processed_at IS NULL AND abandoned_at IS NULL) AS pending FROM ${TABLE}`,
      )
      const [row] = rows
      return {
        all: Number(row?.all),
        processed: Number(row?.processed),
        dead: Number(row?.dead),
        pending: Number(row?.pending),
      }
    },
    close: () => client.end(),
  }
}
