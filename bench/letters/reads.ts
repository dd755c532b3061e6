/** What people and programs read of the letters, one call after the other, in the process of the office. */
import type { Office } from '../../src/index.ts'
import { type Figure, spread, timed } from './measure.ts'
import { kinds, words } from './shape.ts'

type Filter = Parameters<Office['letters']['list']>[0]

const limit = 50
/** From here on a page is deep; where there are fewer letters, the second half of the pages is. */
const deepFrom = 100

/** A letter's correlation id, whatever the size of the load: this one exists in all of them. */
const someRun = { correlationId: 'run-7' }

const commonKind = kinds[1]
const rareKind = kinds.at(-1)

/** The filters whose first page is measured. */
const filters: readonly (readonly [name: string, filter: Filter])[] = [
  ['page of an engine, pending', { engine: 'hmac', status: 'Pending' }],
  ['page of a source (600 lanes)', { source: 'queues' }],
  ['page of a queue', { originalQueue: 'orders-03' }],
  ['page of a signature', { signature: commonKind?.signature.fingerprint }],
  ['page of a correlation id', someRun],
  ['page of an instance', { instanceId: 'instance-7' }],
  ['page of a rare kind (5 letters)', { engine: 'hmac', signature: rareKind?.signature.fingerprint }],
  ['search, common words', { q: words.common }],
  ['search, rare word', { q: words.rare }],
  ['search, no hit', { q: words.none }],
]

export async function measureReads({ letters }: Office, samples: number): Promise<Figure[]> {
  const figures = [
    ...spread('counts', await timed(samples, () => letters.ledger.counts()), 0.99),
    ...spread('first page', await timed(samples, () => letters.list({}, { limit })), 0.95),
    ...spread('deep page (100th on)', await deepPages(letters, samples), 0.95),
  ]
  for (const [name, filter] of filters) {
    figures.push(...spread(name, await timed(samples, () => letters.list(filter, { limit })), 0.95))
  }
  figures.push(...spread('signatures', await timed(samples, () => letters.ledger.signatures()), 0.95))
  return figures
}

/** Walks to the deep pages, then times them one by one. */
async function deepPages(letters: Office['letters'], samples: number): Promise<number[]> {
  const tokens: string[] = []
  let token: string | null = null
  do {
    const page: { continuationToken: string | null } = await letters.list(
      {},
      { limit, continuationToken: token },
    )
    token = page.continuationToken
    if (token !== null) tokens.push(token)
  } while (token !== null && tokens.length < deepFrom + samples)
  const deep = tokens.slice(Math.min(deepFrom, Math.floor(tokens.length / 2)))
  return timed(samples, (at) =>
    letters.list({}, { limit, continuationToken: deep[at % deep.length] ?? null }),
  )
}
