/** Work of the past that several parts do alike, on a clock that stands still unless it is moved. */
import type { SourceName } from '../../letters/kinds.ts'
import type { LeasedItem } from '../../queues/queue.ts'
import type { DemoOffice, DemoStory, PastGroup } from './story.ts'

const LONGEST_LEASE_MS = 30_000

/** Items that are there. */
export async function leaseInPast(
  { queues }: DemoOffice,
  queueName: string,
  batchSize: number,
): Promise<readonly LeasedItem[]> {
  const request = { queueName, clientId: 'demo-past', batchSize }
  // Were there nothing, time that stands still would never end the wait.
  const { items } = await queues.lease(request, AbortSignal.timeout(LONGEST_LEASE_MS))
  return items
}

/** Messages to a partner that is out of order, sent and waited for until they are letters. */
export async function dieAtPartner(
  { letters }: DemoOffice,
  story: DemoStory,
  { source, count, send }: { source: SourceName; count: number; send: () => Promise<unknown> },
): Promise<PastGroup> {
  const captured = async (): Promise<number> => {
    const { totals } = await letters.ledger.counts({ source }, ['source'])
    return totals.Pending + totals.Resolved + totals.Expired
  }
  const before = await captured()
  for (let sent = 0; sent < count; sent++) await send()
  await story.until(async () => (await captured()) >= before + count)
  const { items } = await letters.list({ source, status: 'Pending' }, { limit: count })
  // Of all that were sent back in the past, only these may still be on their way.
  const isConfirmed = async () => (await letters.ledger.standing()).unconfirmed === 0
  return { letters: items, workOn: () => story.until(isConfirmed) }
}
