/** Acts on dead jobs between two folds: whatever is done to them, what is told is what is there. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../world/stores.ts'
import { CountedOffice } from '../../world/webhooks/office.ts'
import { type Books, NaiveBooks, OfficeBooks } from './books.ts'
import type { NaiveOptions } from './naive.ts'
import { TALES } from './stories.ts'

type Act = 'die' | 'die again' | 'requeue' | 'requeue all' | 'take' | 'erase' | 'purge' | 'fold'

/** Random acts, each on a job for which it makes sense; what is told at the end is what is there. */
async function live(books: Books, acts: readonly { readonly act: Act; readonly pick: number }[]) {
  const dead: string[] = []
  const alive: string[] = []
  let jobs = 0
  const take = (from: string[], pick: number): string | undefined => from.splice(pick % from.length, 1)[0]
  for (const { act, pick } of acts) {
    await books.pass(1_000_000)
    const job = act === 'die again' ? take(alive, pick) : take(dead, pick)
    const putBack = () => job === undefined || dead.push(job)
    switch (act) {
      case 'die':
        putBack()
        await books.die(`job ${++jobs}`)
        dead.push(`job ${jobs}`)
        break
      case 'die again':
        if (job === undefined) break
        await books.die(job)
        dead.push(job)
        break
      case 'requeue':
      case 'take':
        if (job === undefined) break
        await (act === 'take' ? books.take(job) : books.requeue(job))
        alive.push(job)
        break
      case 'erase':
        if (job !== undefined) await books.erase(job)
        break
      case 'requeue all':
        putBack()
        await books.requeueAll()
        alive.push(...dead.splice(0))
        break
      case 'purge':
        putBack()
        await books.purge()
        dead.splice(0)
        break
      case 'fold':
        putBack()
        await books.fold()
        break
    }
  }
  await books.pass(1_000_000)
  await books.fold()
  await books.read()
  expect(books.readings.at(-1)).toEqual({ counted: dead.length, actual: dead.length })
}

const ACTS: readonly Act[] = ['die', 'die again', 'requeue', 'requeue all', 'take', 'erase', 'purge', 'fold']
const histories = fc.array(fc.record({ act: fc.constantFrom('die', ...ACTS), pick: fc.nat(20) }), {
  maxLength: 12,
})

describe.each(stores)('dead jobs on $name', (store) => {
  let house: CountedOffice
  let told = 0
  beforeAll(async () => {
    house = await CountedOffice.open(store)
  })
  afterAll(() => house?.close())

  const books = () => new OfficeBooks(house, `story ${++told}`)

  it.each(TALES.map((tale) => [tale.promise, tale] as const))('%s', async (_, { story, dead }) => {
    const told = books()
    await story(told)
    expect(told.readings).toEqual(dead.map((jobs) => ({ counted: jobs, actual: jobs })))
  })

  // H19
  it('are what counting gives, whatever is done to them', async () => {
    await fc.assert(
      fc.asyncProperty(histories, (acts) => live(books(), acts)),
      { numRuns: 12, endOnFailure: true },
    )
  })

  it('left nothing behind that a check would find', () => house.expectVerified())
})

describe('counting by checkpoints', () => {
  const cases = TALES.flatMap(({ promise, story, dead, checkpoints }) =>
    checkpoints.map(({ say, options = {} }) => [say, promise, { story, dead, options }] as const),
  )

  it.each(cases)('says %i where %s', async (say, _, { story, dead, options }) => {
    const books = new NaiveBooks(options)
    await story(books)
    expect(books.readings.at(-1)?.counted).toBe(say)
    expect(say).not.toBe(dead.at(-1))
  })

  const VARIANTS: readonly NaiveOptions[] = [
    {},
    { floor: true },
    { requeueSubtracts: false },
    { requeueSubtracts: false, floor: true },
  ]
  it.each(VARIANTS)('goes wrong in random histories, done with %o', async (options) => {
    const { failed } = await fc.check(
      fc.asyncProperty(histories, (acts) => live(new NaiveBooks(options), acts)),
      // Always the same ones, of which some go wrong.
      { numRuns: 1_000, seed: 1853, endOnFailure: true },
    )
    expect(failed).toBe(true)
  })

  // H19
  it('swallows what is subtracted while a checkpoint runs, when it stops at zero', async () => {
    const books = new NaiveBooks({ floor: true })
    await books.die('first')
    await books.fold()
    await books.requeue('first')
    await books.pass(1_000_000)
    await books.die('job')
    const checkpoint = books.instance.checkpointInSteps(() => books.now)
    while (checkpoint.next().value !== 'counted');
    await books.requeue('job')
    for (const _ of checkpoint);
    expect([books.store.counted('c/k'), books.store.actual('c/k')]).toEqual([1, 0])
  })
})
