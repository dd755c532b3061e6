/** What goes over HTTP, with the published client: reading, and capturing what died elsewhere. */
import { LetterClient } from '../../src/client/index.ts'
import { type Figure, spread, timed } from '../figures.ts'
import { peakRssMb } from '../meter.ts'
import { startBartleby } from '../servers/bartleby.ts'
import { payload } from '../system.ts'
import type { Sizes } from './flags.ts'

const callers = 16
/** Callers of batches, and letters of each. */
const batchCallers = 4
const batchSize = 1_000

/** What is read comes first: it is measured with the letters that were loaded. */
export async function measureServed(
  store: string,
  { runs, samples, captureSeconds }: Sizes,
): Promise<Figure[]> {
  const server = await startBartleby(store)
  try {
    const letters = new LetterClient({ url: server.url, fetch: server.fetch })
    const figures: Figure[] = []
    for (let run = 0; run < runs; run++) {
      figures.push(
        ...spread('counts over HTTP', await timed(samples, () => letters.counts()), 0.99),
        ...spread('first page over HTTP', await timed(samples, () => letters.list({ limit: 50 })), 0.95),
      )
    }
    for (let run = 0; run < runs; run++) {
      figures.push(await captureRate(letters, run, captureSeconds))
      figures.push(await batchRate(letters, run, captureSeconds))
    }
    figures.push({ name: 'peak RSS of the server', unit: 'MB', value: peakRssMb(server.pid ?? 0) })
    return figures
  } finally {
    await server.stop()
  }
}

const report = (sourceId: string, n: number) => ({
  engine: 'http',
  sourceId,
  originalMessage: JSON.stringify(payload(n)),
  errorMessage: `partner ${n} did not answer`,
  errorClass: 'TimeoutError',
})

async function captureRate(letters: LetterClient, run: number, seconds: number): Promise<Figure> {
  const value = await rateOf(callers, seconds, async (caller, n) => {
    await letters.capture(report(`bench-${run}-${caller}-${n}`, n))
    return 1
  })
  return { name: `captures over HTTP, ${callers} callers`, unit: '/s', value }
}

async function batchRate(letters: LetterClient, run: number, seconds: number): Promise<Figure> {
  const value = await rateOf(batchCallers, seconds, async (caller, n) => {
    const reports = Array.from({ length: batchSize }, (_, i) =>
      report(`batch-${run}-${caller}-${n}-${i}`, n + i),
    )
    const { created } = await letters.captureMany(reports)
    if (created !== batchSize) throw new Error(`${created} of ${batchSize} letters were created`)
    return created
  })
  return { name: `captures over HTTP in batches, ${batchCallers} callers`, unit: '/s', value }
}

/** Letters a second, while callers call for so long; each call tells how many it captured. */
async function rateOf(
  many: number,
  seconds: number,
  capture: (caller: number, call: number) => Promise<number>,
): Promise<number> {
  let captured = 0
  const startMs = performance.now()
  const endsAtMs = startMs + seconds * 1000
  await Promise.all(
    Array.from({ length: many }, async (_, caller) => {
      for (let n = 0; performance.now() < endsAtMs; n++) {
        // Others count while this one waits.
        const some = await capture(caller, n)
        captured += some
      }
    }),
  )
  return (captured * 1000) / (performance.now() - startMs)
}
