/** Letters by the thousand: items that die in batches, in a store that nobody else has open. */
import { Office } from '../../src/office.ts'

const BATCH = 1_000

/** The instance that the letter of the `n`th item of a batch is of; null: none, its item died in nobody's hands. */
type KeyOf = ((n: number) => string) | null

/** Lets items of a queue die; gives the ids with which they did: each begins the row key of its letter. */
async function letDie({ queues }: Office, queueName: string, count: number, keyOf: KeyOf): Promise<string[]> {
  const produced = Array.from({ length: count }, (_, n) => ({ payload: `{"number":${n}}` }))
  await queues.produce({ queueName, items: produced, requestTimeout: '1m' })
  const lease = { queueName, clientId: 'sexton', batchSize: count, requestTimeout: '10s' }
  const { partition, items } = await queues.lease(lease)
  const runOf = (instanceId: string) => ({
    ...{ engine: 'hmac', operation: 'rotate', instanceId, correlationId: crypto.randomUUID() },
    ...{ actor: 'tester', durationMs: 1, input: null, output: null },
    ...{ errorClass: 'Error', errorMessage: 'it failed', errorStack: null },
  })
  const dead = items.map(({ id }, n) => ({ id, dead: true, ...(keyOf && { run: runOf(keyOf(n)) }) }))
  await queues.retry({ queueName, partition, items: dead })
  return items.map(({ id }) => id)
}

/** Opens the store, creates the queues, each with a dead queue called `{name}-dead`, and lets `work` fill it. */
async function fill(store: string, queues: readonly string[], work: (office: Office) => Promise<void>) {
  const office = await Office.open({ store })
  try {
    const settings = { leaseTimeout: '1h', expireTimeout: '240h', requestedPartitions: 1 }
    for (const queueName of queues) {
      await office.queues.create({ ...settings, queueName: `${queueName}-dead` })
      await office.queues.create({ ...settings, queueName, deadQueue: `${queueName}-dead` })
    }
    await work(office)
  } finally {
    await office.close()
  }
}

/** As many letters in each of the queues; gives the ids of all. */
export async function buryThousands(
  store: string,
  queues: readonly string[],
  count: number,
): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  const bury = async (office: Office, queue: string) => {
    for (let made = 0; made < count / queues.length; made += BATCH)
      for (const id of await letDie(office, queue, BATCH, null)) ids.add(id)
  }
  await fill(store, queues, async (office) => {
    await Promise.all(queues.map((queue) => bury(office, queue)))
  })
  return ids
}

/** As many letters of keys as of a plain queue; those of a key go back to one of two queues, always the same. */
export async function buryKeyed(store: string, letters: number, keys: number): Promise<void> {
  const queues = ['orders', 'mails']
  await fill(store, queues, async (office) => {
    for (let done = 0; done < letters; done += BATCH) {
      const n = done / BATCH
      const queue = queues[(n >> 1) % 2] ?? ''
      const keyOf: KeyOf = n % 2 === 0 ? null : (i) => `${queue}-${i % (keys / 2)}`
      await letDie(office, queue, Math.min(BATCH, letters - done), keyOf)
    }
  })
}

/** The id that a queue letter died with, from its row key. */
export const idOf = (rowKey: string): string => rowKey.slice(0, rowKey.lastIndexOf('-'))
