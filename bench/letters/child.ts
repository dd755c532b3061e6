/** One store with one number of letters, in a process of its own: load, read, serve, bury, expire, reconcile. */
import { Office } from '../../src/index.ts'
import { type Figure, middles } from '../figures.ts'
import { measureExpiry } from './expire.ts'
import { loadLetters } from './load.ts'
import { plansOf } from './plans.ts'
import { measureReads } from './reads.ts'
import { reconcile } from './reconcile.ts'
import { measureServed } from './served.ts'
import { measureStorm } from './storm.ts'
import type { Outcome, Task } from './task.ts'

// A signal ends the process by its 'exit' event, at which the server it has started is stopped.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** The newest letter is two days old, so that an expiry of what is older than a day takes them all. */
const twoDaysMs = 2 * 86_400_000

const { store, letters, expire, fewest, sizes }: Task = JSON.parse(process.argv[2] ?? '{}')

const startMs = performance.now()
await loadLetters(store, letters, BigInt(Date.now() - twoDaysMs) * 1000n)
const figures: Figure[] = [{ name: 'load', unit: 's', value: (performance.now() - startMs) / 1000 }]
await inOffice(async (office) => {
  for (let run = 0; run < sizes.runs; run++) figures.push(...(await measureReads(office, sizes.samples)))
})
const plans = await plansOf(store, middles(figures), fewest)
figures.push(...(await measureServed(store, sizes)))
await inOffice(async (office) => figures.push(...(await measureStorm(office, sizes.stormItems))))
if (expire)
  await inOffice(async (office) => figures.push(...(await measureExpiry(office, sizes.calmSeconds))))
const outcome: Outcome = {
  figures: middles(figures),
  plans,
  reconciled: await reconcile(store),
  peakRssMb: process.resourceUsage().maxRSS / 1024,
}
process.send?.(outcome, () => process.exit(0))

async function inOffice(act: (office: Office) => Promise<unknown>): Promise<void> {
  const office = await Office.open({ store })
  try {
    await act(office)
  } finally {
    await office.close()
  }
}
