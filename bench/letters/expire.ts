/** Expiring all pending letters at once while somebody else writes: how long it takes, and how long the writer waits. */
import { setTimeout } from 'node:timers/promises'
import type { Office } from '../../src/index.ts'
import { type Figure, quantile, rising } from '../figures.ts'

const queueName = 'beside'
const writePauseMs = 5

export async function measureExpiry(office: Office, calmSeconds: number): Promise<Figure[]> {
  const settings = { leaseTimeout: '5m', expireTimeout: '24h', requestedPartitions: 1 }
  await office.queues.create({ ...settings, queueName })
  const alone = await whileWriting(office, () => setTimeout(calmSeconds * 1000))
  const startMs = performance.now()
  let expired = 0
  const beside = await whileWriting(office, async () => {
    expired = await office.letters.expireOlder({ olderThanDays: 1, engine: null, actor: 'bench' })
  })
  const seconds = (performance.now() - startMs) / 1000
  return [
    { name: 'bulk expire', unit: 'letters', value: expired },
    { name: 'bulk expire, rate', unit: '/s', value: expired / seconds },
    { name: 'a writer without it, p99', unit: 'ms', value: quantile(alone, 0.99) },
    { name: 'a writer without it, worst', unit: 'ms', value: alone.at(-1) ?? Number.NaN },
    { name: 'a writer during bulk expire, p99', unit: 'ms', value: quantile(beside, 0.99) },
    { name: 'a writer during bulk expire, worst', unit: 'ms', value: beside.at(-1) ?? Number.NaN },
  ]
}

/** How long each single produce took while `act` ran, in rising order. */
async function whileWriting({ queues }: Office, act: () => Promise<unknown>): Promise<number[]> {
  const tookMs: number[] = []
  let acting = true
  const writing = (async () => {
    while (acting) {
      const startMs = performance.now()
      await queues.produce({ queueName, items: [{ payload: 'x' }] })
      tookMs.push(performance.now() - startMs)
      await setTimeout(writePauseMs)
    }
  })()
  try {
    await act()
  } finally {
    acting = false
    await writing
  }
  return rising(tookMs)
}
