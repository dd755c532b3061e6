/** A walk over many letters while others write: complete, and nothing twice. 10,000 of them; 100,000 in `npm run prove`. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Clerk } from '../world/clerk.ts'
import { sizeOf } from '../world/limits.ts'
import { buryThousands, idOf } from '../world/many-deaths.ts'
import type { Listed } from '../world/office-api.ts'
import { type Random, seededRandom } from '../world/random.ts'
import { startServer } from '../world/server.ts'
import { stores } from '../world/stores.ts'
import { Wire } from '../world/wire.ts'

const LETTERS = sizeOf(10_000, 100_000)
const QUEUES = Array.from({ length: 10 }, (_, n) => `walked-${n}`)

/** Somebody who changes letters all over the office until told to stop. */
class Busybody {
  readonly #clerk: Clerk
  readonly #random: Random
  readonly #letters: readonly Listed[]
  readonly touched = new Set<string>()
  readonly done: Promise<void>
  reopened = 0
  #stopping = false

  constructor(clerk: Clerk, random: Random, letters: readonly Listed[]) {
    this.#clerk = clerk
    this.#random = random
    this.#letters = letters
    this.done = this.#work()
    // Whoever awaits `stop` sees the failure.
    this.done.catch(() => {})
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await this.done
  }

  async #work(): Promise<void> {
    for (let turn = 0; !this.#stopping; turn++) {
      const letter = this.#letters[this.#random.whole(0, this.#letters.length - 1)]
      if (letter === undefined) continue
      this.touched.add(idOf(letter.rowKey))
      if (turn % 4 === 0) await this.#failAnew(letter)
      else if (turn % 4 === 1) await this.#clerk.change(letter, 'Resolved')
      else if (turn % 4 === 2) await this.#clerk.change(letter, 'Pending')
      else await this.#capture()
      // Room for the reader, who shares the server with three of these.
      await pause(this.#random.whole(2, 10))
    }
  }

  /** Sends a letter back and lets its item die again: its last failure is now, in the middle of the walk. */
  async #failAnew(letter: Listed): Promise<void> {
    if (!(await this.#clerk.retry(letter))) return
    const queue = letter.originalQueue ?? ''
    const { items } = await this.#clerk.lease(queue, 10)
    if (items.length === 0) return
    const ids = items.map(({ id }) => id)
    const { status } = await this.#clerk.bury(queue, ids)
    expect(status).toBe(200)
    this.reopened += ids.length
  }

  async #capture(): Promise<void> {
    const body = {
      engine: 'hmac',
      originalMessage: 'new',
      errorMessage: 'while you walked',
      sourceId: `${this.#clerk.name}-${this.#random.whole(0, 2 ** 31)}`,
      originalQueue: QUEUES[0],
    }
    await this.#clerk.expects([200, 201], 'POST', '/api/dlq', { body })
  }
}

/** What a walk showed, by the id that begins the row key; fails when something was shown twice. */
function shown(letters: readonly Listed[]): Set<string> {
  const byKey = Map.groupBy(letters, ({ engine, rowKey }) => `${engine} ${rowKey}`)
  expect([...byKey].filter(([, all]) => all.length > 1).map(([key]) => key)).toEqual([])
  return new Set(letters.map(({ rowKey }) => idOf(rowKey)))
}

const missing = (all: Iterable<string>, from: ReadonlySet<string>): string[] =>
  [...all].filter((id) => !from.has(id))

describe.each(stores)('a walk over many letters on $name while others write', (store) => {
  it('is complete and shows nothing twice', async () => {
    const random = seededRandom()
    const place = await store.fresh()
    try {
      const ids = await buryThousands(place.url, QUEUES, LETTERS)
      expect(ids.size).toBe(LETTERS)
      const server = await startServer({ store: place.url, testApi: false })
      const wire = new Wire(server.url)
      try {
        const reader = new Clerk(wire, 'reader')
        const samples: Listed[] = []
        for (const originalQueue of QUEUES) {
          samples.push(...(await reader.page({ originalQueue, limit: 50 })).items)
          // The oldest too: what a walk meets last has the most time to move away from it.
          const { lastFailureAtUtc = '' } = samples.at(-1) ?? {}
          samples.push(...(await reader.page({ originalQueue, limit: 50, toDate: lastFailureAtUtc })).items)
        }
        const writers = ['one', 'two', 'three'].map(
          (name) => new Busybody(new Clerk(wire, name), random, samples),
        )
        try {
          const everything = shown(await reader.walk({}))
          expect(missing(ids, everything).length, `BARTLEBY_TEST_SEED=${random.seed}`).toBe(0)

          const [queue = ''] = QUEUES
          const pending = shown(
            await reader.walk({ originalQueue: queue, status: 'Pending', engine: 'queues' }),
          )
          const touched = new Set(writers.flatMap((writer) => [...writer.touched]))
          const still = shown(await reader.walk({ originalQueue: queue, engine: 'queues' }))
          expect(still.size).toBe(LETTERS / QUEUES.length)
          expect(missing(still, pending).filter((id) => !touched.has(id))).toEqual([])
        } finally {
          for (const writer of writers) await writer.stop()
        }
        expect(writers.reduce((sum, { reopened }) => sum + reopened, 0)).toBeGreaterThan(20)
      } finally {
        await wire.close()
        await server.stop()
      }
    } finally {
      await place.dispose()
    }
  })
})
