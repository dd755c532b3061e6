/** What goes over HTTP, with the published client: reading, and capturing what died elsewhere. */
import { LetterClient } from '../../src/client/index.ts'
import { startBartleby } from '../servers/bartleby.ts'
import { payload } from '../system.ts'
import { type Figure, spread, timed } from './measure.ts'

const callers = 16

export async function measureServed(store: string, samples: number, seconds: number): Promise<Figure[]> {
  const server = await startBartleby(store)
  try {
    const letters = new LetterClient({ url: server.url, fetch: server.fetch })
    return [
      ...spread('counts over HTTP', await timed(samples, () => letters.counts()), 0.99),
      ...spread('first page over HTTP', await timed(samples, () => letters.list({ limit: 50 })), 0.95),
      await captureRate(letters, seconds),
    ]
  } finally {
    await server.stop()
  }
}

async function captureRate(letters: LetterClient, seconds: number): Promise<Figure> {
  let captured = 0
  const startMs = performance.now()
  const endsAtMs = startMs + seconds * 1000
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let n = 0; performance.now() < endsAtMs; n++) {
        await letters.capture({
          engine: 'http',
          sourceId: `bench-${caller}-${n}`,
          originalMessage: JSON.stringify(payload(n)),
          errorMessage: `partner ${n} did not answer`,
          errorClass: 'TimeoutError',
        })
        captured++
      }
    }),
  )
  const perSecond = (captured * 1000) / (performance.now() - startMs)
  return { name: `captures over HTTP, ${callers} callers`, unit: '/s', value: perSecond }
}
