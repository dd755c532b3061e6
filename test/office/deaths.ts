/** Letters by the thousand: items that die in batches, through the library or through the queue API. */
import { Office } from '../../src/office.ts'

const BATCH = 1000

export interface Cemetery {
  readonly queues: readonly string[]
  /** The ids with which the items died: each begins the row key of its letter. */
  readonly ids: ReadonlySet<string>
}

/** Lets `count` items die in the queues of a store that nobody else has open. */
export async function buryThousands(
  store: string,
  queues: readonly string[],
  count: number,
): Promise<Cemetery> {
  const office = await Office.open({ store })
  try {
    for (const queue of queues) {
      const settings = { leaseTimeout: '10m', expireTimeout: '24h', requestedPartitions: 1 }
      await office.queues.create({ ...settings, queueName: `${queue}-dead` })
      await office.queues.create({ ...settings, queueName: queue, deadQueue: `${queue}-dead` })
    }
    const ids = new Set<string>()
    const perQueue = count / queues.length
    await Promise.all(
      queues.map(async (queue) => {
        for (let made = 0; made < perQueue; made += BATCH) {
          const items = Array.from({ length: BATCH }, (_, n) => ({ payload: `${queue} ${made + n}` }))
          await office.queues.produce({ queueName: queue, items })
          const leased = await office.queues.lease({ queueName: queue, clientId: 'sexton', batchSize: BATCH })
          for (const { id } of leased.items) ids.add(id)
          const retried = leased.items.map(({ id }) => ({ id, dead: true }))
          await office.queues.retry({ queueName: queue, items: retried })
        }
      }),
    )
    return { queues, ids }
  } finally {
    await office.close()
  }
}

/** The id that a queue letter died with, from its row key. */
export const idOf = (rowKey: string): string => rowKey.slice(0, rowKey.lastIndexOf('-'))
