/**
 * How fast items die, beside how fast they are completed: the same queue, the same consumers, in turns. Every death is
 * a capture: a letter, its counts and its history.
 */
import type { Office } from '../../src/index.ts'
import type { Figure } from '../figures.ts'
import { payload } from '../system.ts'

const queueName = 'storm'
const deadQueue = 'storm-dead'
const consumers = 4
const batch = 1_000
const rounds = 3
const warmUpItems = 4_000

type Ending = 'complete' | 'die'

/** Figures of every round. */
export async function measureStorm({ queues }: Office, items: number): Promise<Figure[]> {
  const settings = { leaseTimeout: '5m', expireTimeout: '24h', requestedPartitions: 1 }
  await queues.create({ ...settings, queueName: deadQueue })
  await queues.create({ ...settings, queueName, deadQueue })
  const figures: Figure[] = []
  for (let round = 0; round <= rounds; round++) {
    const count = round === 0 ? warmUpItems : items
    const rate = async (ending: Ending): Promise<number> => {
      await produce(queues, count)
      return settle(queues, ending, count)
    }
    const completed = await rate('complete')
    const died = await rate('die')
    if (round === 0) continue
    figures.push(
      { name: 'queue completions', unit: '/s', value: completed },
      { name: 'queue deaths (captures)', unit: '/s', value: died },
      { name: 'deaths : completions', unit: '%', value: (100 * died) / completed },
    )
  }
  const dead = rounds * items + warmUpItems
  const [part] = (await queues.stats(deadQueue)).partitions
  if (part?.total !== dead) throw new Error(`${dead} items died and ${part?.total} lie in the dead queue`)
  return figures
}

async function produce(queues: Office['queues'], count: number): Promise<void> {
  for (let first = 0; first < count; first += batch) {
    const items = Array.from({ length: Math.min(batch, count - first) }, (_, at) => ({
      payload: JSON.stringify(payload(first + at)),
    }))
    await queues.produce({ queueName, items })
  }
}

/** Items per second, from the first lease to the last answer. */
async function settle(queues: Office['queues'], ending: Ending, count: number): Promise<number> {
  const done = new AbortController()
  let settled = 0
  const startMs = performance.now()
  const consume = async (clientId: string): Promise<void> => {
    while (settled < count) {
      const leased = await queues
        .lease({ queueName, clientId, batchSize: batch }, done.signal)
        .catch((error: unknown) => {
          if (done.signal.aborted) return null
          throw error
        })
      if (leased === null) return
      const { partition, items } = leased
      if (ending === 'complete') {
        await queues.complete({ queueName, partition, ids: items.map(({ id }) => id) })
      } else {
        await queues.retry({ queueName, partition, items: items.map(({ id }) => ({ id, dead: true })) })
      }
      settled += items.length
      if (settled === count) done.abort()
    }
  }
  await Promise.all(Array.from({ length: consumers }, (_, at) => consume(`consumer-${at}`)))
  return (count * 1000) / (performance.now() - startMs)
}
