/**
 * Fills an empty store with dead jobs, by the million: straight into the tables, as servers would have left them. The
 * channels and consumers are made by a server.
 */
import { signatureOf } from '../../src/core/signature.ts'
import { queueOfConsumer } from '../../src/sources/webhooks/webhook.ts'
import { type Loader, openLoader } from '../letters/loader.ts'
import { insertTexts, words } from '../letters/sql.ts'
import {
  createPlaces,
  deadErrors,
  insertDeadLetters,
  insertFailures,
  insertJobs,
  insertMessages,
  insertTotals,
  SPAN_US,
} from './dead-sql.ts'
import { onStage } from './stage.ts'

export interface Layout {
  readonly channels: number
  /** Of each channel; each message has a dead job for all of them. */
  readonly consumers: number
  readonly type: 'push' | 'pull'
  /** Failures that are filed of each job beside the last one. */
  readonly failures: number
}

export interface LoadedConsumer {
  readonly channelId: string
  readonly consumerId: string
}

const CHUNK = 250_000
const TWO_DAYS_MS = 2 * 86_400_000

/** Loads `count` dead jobs, the newest from two days ago. `count` is a multiple of channels times consumers. */
export async function loadDead(
  store: string,
  layout: Layout,
  count: number,
): Promise<{ readonly consumers: readonly LoadedConsumer[] }> {
  const consumers = await makeConsumers(store, layout)
  await fill(store, layout, consumers, count)
  return { consumers }
}

/** The same for consumers that are there. */
export async function fill(
  store: string,
  layout: Layout,
  consumers: readonly LoadedConsumer[],
  count: number,
): Promise<void> {
  const loader = await openLoader(store)
  try {
    await makeOlder(loader)
    const series = await registerPlaces(loader, layout, consumers)
    const tables = ['letters', 'history', 'letter_texts', 'webhook_jobs', 'webhook_messages']
    const putIndexesBack = count > CHUNK ? await loader.dropIndexes(tables) : async () => {}
    const nowUs = BigInt(Date.now() - TWO_DAYS_MS) * 1000n
    const messages = count / layout.consumers
    const chunk = Math.ceil(CHUNK / layout.consumers)
    for (let first = 0; first < messages; first += chunk) {
      const last = Math.min(first + chunk, messages) - 1
      const range = { ...layout, first, last, messages, nowUs, series }
      await loader.run('BEGIN')
      await loader.run(insertMessages(loader.dialect, range))
      await loader.run(insertJobs(loader.dialect, range))
      for (const statement of insertDeadLetters(loader.dialect, range)) await loader.run(statement)
      if (layout.failures > 0) await loader.run(insertFailures(loader.dialect, range))
      await loader.run(
        insertTexts(loader.dialect, first * layout.consumers + 1, (last + 1) * layout.consumers),
      )
      await loader.run('COMMIT')
      const loaded = (last + 1) * layout.consumers
      if (count > CHUNK)
        console.error(`  loaded ${loaded.toLocaleString('en')} of ${count.toLocaleString('en')}`)
    }
    await putIndexesBack()
    for (const statement of insertTotals(loader.dialect)) await loader.run(statement)
    await moveNumbersOn(loader, count)
    await loader.calm()
  } finally {
    await loader.close()
  }
}

/** Makes them as users do. */
function makeConsumers(store: string, { channels, consumers, type }: Layout): Promise<LoadedConsumer[]> {
  return onStage(store, async ({ broker }) => {
    const made: LoadedConsumer[] = []
    for (let channel = 0; channel < channels; channel++) {
      const channelId = `dead-${channel}`
      await broker.putChannel(channelId)
      for (let at = 0; at < consumers; at++) {
        const consumerId = `consumer-${at}`
        await broker.putConsumer(channelId, consumerId, type)
        made.push({ channelId, consumerId })
      }
    }
    return made
  })
}

/** Consumers are older than their jobs: what died before there was a consumer would have been another one's. */
async function makeOlder(loader: Loader): Promise<void> {
  const { schema } = words[loader.dialect]
  for (const table of ['webhook_producers', 'webhook_channels', 'webhook_consumers'])
    await loader.run(`UPDATE ${schema}${table} SET created_at = created_at - ${2n * SPAN_US}`)
}

/** Signatures, drawers and the series of captures, and the table that has their numbers; gives that of the series. */
async function registerPlaces(
  loader: Loader,
  layout: Layout,
  consumers: readonly LoadedConsumer[],
): Promise<number> {
  const { schema } = words[loader.dialect]
  const one = async (text: string, ...values: readonly (string | number)[]): Promise<number> => {
    const [row] = await loader.rows(text, ...values)
    return Number(row?.number)
  }
  await loader.run(createPlaces)
  for (const [error, { errorClass, before, after }] of deadErrors.entries()) {
    const signature = signatureOf({ errorClass, errorMessage: `${before}1${after}`, errorStack: null })
    const group = await one(
      `INSERT INTO ${schema}signatures (fingerprint, error_class, title, first_seen_at) VALUES ($1, $2, $3, 0)
       RETURNING id AS number`,
      signature.fingerprint,
      signature.errorClass,
      signature.title,
    )
    for (const [index, { channelId, consumerId }] of consumers.entries()) {
      const channel = await one(
        `SELECT number FROM ${schema}webhook_channels WHERE channel_id = $1`,
        channelId,
      )
      const consumer = await one(
        `SELECT number FROM ${schema}webhook_consumers WHERE channel = $1 AND consumer_id = $2`,
        channel,
        consumerId,
      )
      const queue = queueOfConsumer(channelId, consumerId)
      await loader.run(
        `INSERT INTO ${schema}places (source, engine, queue) VALUES ('webhooks', 'webhooks', $1)
         ON CONFLICT (source, engine, queue) DO NOTHING`,
        queue,
      )
      const drawer = await one(
        `INSERT INTO ${schema}drawers (source, engine, queue, signature, place)
         SELECT source, engine, queue, CAST($2 AS int), id FROM ${schema}places WHERE source = 'webhooks' AND queue = $1
         RETURNING id AS number`,
        queue,
        group,
      )
      await loader.run(
        'INSERT INTO addressees VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
        Math.floor(index / layout.consumers),
        index % layout.consumers,
        error,
        channel,
        channelId,
        consumer,
        drawer,
        errorClass,
        before,
        after,
      )
    }
  }
  return one(
    `INSERT INTO ${schema}history_series (engine, operation, status) VALUES ('webhooks', 'capture', 0)
     ON CONFLICT (engine, operation, status) DO UPDATE SET engine = excluded.engine RETURNING id AS number`,
  )
}

/** The office goes on numbering behind what was loaded. */
async function moveNumbersOn(loader: Loader, count: number): Promise<void> {
  if (loader.dialect === 'postgres') await loader.rows(`SELECT setval('bartleby.letter_ids', $1)`, count)
  else await loader.run(`UPDATE serials SET last = max(last, $1) WHERE name = 'letters'`, count)
}
