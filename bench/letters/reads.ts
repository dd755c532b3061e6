/** What people and programs read of the letters, one call after the other, in the process of the office. */
import type { Office } from '../../src/index.ts'
import { type Figure, spread, timed } from '../figures.ts'
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

/** A call that is measured. */
export interface Read {
  readonly name: string
  readonly high: 0.95 | 0.99
  call(at: number): Promise<unknown>
}

/** All calls that are measured; so many deep pages are looked up. */
export async function readsOf({ letters }: Office, deepPages: number): Promise<Read[]> {
  const deep = await deepTokens(letters, deepPages)
  const page = (name: string, filter: Filter): Read => ({
    name,
    high: 0.95,
    call: () => letters.list(filter, { limit }),
  })
  return [
    { name: 'counts', high: 0.99, call: () => letters.numbers.counts() },
    page('first page', {}),
    {
      name: 'deep page (100th on)',
      high: 0.95,
      call: (at) => letters.list({}, { limit, continuationToken: deep[at % deep.length] ?? null }),
    },
    ...filters.map(([name, filter]) => page(name, filter)),
    { name: 'signatures', high: 0.95, call: () => letters.numbers.signatures() },
  ]
}

export async function measureReads(office: Office, samples: number): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const { name, high, call } of await readsOf(office, samples))
    figures.push(...spread(name, await timed(samples, call), high))
  return figures
}

/** Walks to the deep pages. */
async function deepTokens(letters: Office['letters'], pages: number): Promise<string[]> {
  const tokens: string[] = []
  let token: string | null = null
  do {
    const page: { continuationToken: string | null } = await letters.list(
      {},
      { limit, continuationToken: token },
    )
    token = page.continuationToken
    if (token !== null) tokens.push(token)
  } while (token !== null && tokens.length < deepFrom + pages)
  return tokens.slice(Math.min(deepFrom, Math.floor(tokens.length / 2)))
}
