/**
 * What exists from the first start on, by the configuration. Applied when its hash is not the last one: entries get the configured values
 * again, and changes through the API survive every start in between. Hash and entries are one transaction; of servers that start together
 * one applies it. A server without a seed can share a store with one that has a seed.
 */
import { hash } from 'node:crypto'
import { canonicalJson } from '../../../core/json/exact.ts'
import { sql, type Transaction, type Value } from '../../../store/database.ts'
import type { Parts, Seed, SeedEntry } from '../settings.ts'
import type { Holder } from '../webhook.ts'
import { CONSUMERS, ownOfConsumer } from './consumers.ts'
import { CHANNELS, type Draft, draftOf, type HolderKind, PRODUCERS } from './holders.ts'
import { given, parseCallbackUrl, withoutCredentials } from './texts.ts'

const NAME = 'seed'

/** By primary key, only when the hash is another. Waits for a server that is applying a seed. */
const remember = sql(
  'webhooks.rememberSeed',
  `INSERT INTO bartleby.webhook_seed AS known (name, hash, applied_at) VALUES ($1, $2, $3)
   ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, applied_at = excluded.applied_at
   WHERE known.hash <> excluded.hash`,
)

/** By primary key. */
const readHash = sql('webhooks.readSeed', 'SELECT hash FROM bartleby.webhook_seed WHERE name = $1')

export class Seeding {
  readonly #parts: Pick<Parts, 'db' | 'clock' | 'xids'>
  readonly #seed: Seed
  readonly #hash: string

  constructor(parts: Pick<Parts, 'db' | 'clock' | 'xids'>, seed: Seed) {
    this.#parts = parts
    this.#seed = seed
    this.#hash = hash('sha256', canonicalJson(seed), 'hex')
  }

  async apply(): Promise<void> {
    const { channels, producers, consumers } = this.#seed
    if (channels.length + producers.length + consumers.length === 0) return
    const { db, clock } = this.#parts
    await db.transaction('webhooks.seed', async (tx) => {
      const isNew = (await tx.run(remember, NAME, this.#hash, clock.now())) === 1
      if (isNew) await this.#write(tx)
    })
  }

  /** Without secrets and credentials. Fails when the store cannot be read. */
  async status() {
    await this.#parts.db.session('webhooks.readSeed', (session) => session.rows(readHash, NAME))
    const { channels, producers, consumers } = this.#seed
    return {
      hash: this.#hash,
      producers: producers.map(toSeeded),
      channels: channels.map(toSeeded),
      consumers: consumers.map(({ channel, callbackUrl, type = 'push', ...entry }) => ({
        ...toSeeded(entry),
        channel,
        callbackUrl: withoutCredentials(callbackUrl),
        type,
      })),
    }
  }

  async #write(tx: Transaction): Promise<void> {
    const { clock, xids } = this.#parts
    const putting = { tx, now: clock.now(), xids }
    const { channels, producers, consumers } = this.#seed
    const put = async <T extends Holder>(kind: HolderKind<T>, entries: readonly SeedEntry[]) => {
      for (const entry of entries)
        await kind.putAnyway({ ...putting, place: [entry.id], draft: () => draftOfEntry(entry) })
    }
    await put(PRODUCERS, producers)
    await put(CHANNELS, channels)
    for (const { channel: channelId, callbackUrl, type = 'push', ...entry } of consumers) {
      const channel = await CHANNELS.read(tx, [channelId])
      if (channel === null)
        throw new Error(
          `the seed has a consumer '${entry.id}' on the channel '${channelId}', which does not exist`,
        )
      if (parseCallbackUrl(callbackUrl) === null)
        throw new Error(
          `the seed has a consumer '${entry.id}' whose callbackUrl is no absolute http or https URL`,
        )
      const place = [channel.number, entry.id] as const
      const draft = () => draftOfEntry(entry, ownOfConsumer({ callbackUrl, type }))
      await CONSUMERS.putAnyway({ ...putting, place, draft })
    }
  }
}

/** A token that is not configured is random for a new entry, and stays what it is on one that exists. */
const draftOfEntry = (entry: SeedEntry, own?: readonly Value[]): Draft => ({
  ...draftOf(entry.id, entry, own),
  keepsToken: given(entry.token) === null,
})

const toSeeded = ({ id, name }: SeedEntry) => ({ id, name: given(name) ?? id })

export type SeedStatus = Awaited<ReturnType<Seeding['status']>>
