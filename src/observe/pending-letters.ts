/** Pending letters by where they come from, for overviews of queues and engines. From the counts: nothing is counted. */
import type { Ledger } from '../letters/ledger.ts'

/** How many letters are pending, by engine or by the queue they came from. Letters without one are left out. */
export async function pendingLetters(
  ledger: Pick<Ledger, 'counts'>,
  key: 'engine' | 'originalQueue',
): Promise<ReadonlyMap<string, number>> {
  const { items } = await ledger.counts({ status: 'Pending' }, [key])
  const pending = new Map<string, number>()
  for (const item of items) {
    const name = item[key]
    if (name != null) pending.set(name, item.count)
  }
  return pending
}
