/**
 * Order and completeness, whatever happens: random stories of lines, failures, deaths, late commits, dispatchers that fall
 * silent and come back, and time that passes. `npm run prove` tells more than ten times as many.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isProof, sizeOf } from '../world/limits.ts'
import { OutboxStore, type Row } from '../world/outbox.ts'
import { stores } from '../world/stores.ts'
import { type Fate, MAX_RETRIES, World } from './order-world.ts'

const STORIES = sizeOf({ sqlite: 15, postgres: 20 }, { sqlite: 250, postgres: 300 })

type Step =
  | { readonly what: 'insert'; readonly fates: Fate[]; readonly during: number }
  | { readonly what: 'begin'; readonly fates: Fate[] }
  | { readonly what: 'end'; readonly which: number; readonly commits: boolean }
  | { readonly what: 'drain'; readonly count: number }
  | { readonly what: 'fall silent'; readonly after: number }
  | { readonly what: 'wake' }
  | { readonly what: 'advance'; readonly seconds: number }

const fate: fc.Arbitrary<Fate> = fc.record({
  line: fc.option(fc.nat(1), { freq: 6 }),
  failures: fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.nat(MAX_RETRIES + 2) },
  ),
  refused: fc.oneof(
    { weight: 12, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  ),
})
const fates = fc.array(fate, { minLength: 1, maxLength: 4 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant('insert' as const), fates, during: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('begin' as const), fates }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('end' as const), which: fc.nat(3), commits: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ what: fc.constant('drain' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('fall silent' as const), after: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('wake' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constant('advance' as const),
      seconds: fc.constantFrom(1, 3, 30, 61, 61),
    }),
  },
)
/** What goes together often enough to be met: a late commit before what a dispatcher has, and claims that were in vain. */
const phrase: fc.Arbitrary<Step[]> = fc.oneof(
  { weight: 8, arbitrary: step.map((each) => [each]) },
  {
    weight: 1,
    arbitrary: fc.tuple(fates, fates, fc.nat(2)).map(([late, fates, after]): Step[] => [
      { what: 'begin', fates: late },
      { what: 'insert', fates, during: 0 },
      { what: 'fall silent', after },
      { what: 'end', which: 0, commits: true },
      { what: 'drain', count: 2 },
    ]),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(fates, fc.nat(2), fc.nat(1)).map(([fates, first, second]): Step[] => [
      { what: 'insert', fates, during: 0 },
      { what: 'fall silent', after: first },
      { what: 'advance', seconds: 61 },
      { what: 'fall silent', after: second },
      { what: 'advance', seconds: 61 },
    ]),
  },
)
/** A message that five silent dispatchers had would pass for poison. */
const story = fc
  .array(phrase, { minLength: 3, maxLength: 16, size: 'max' })
  .map((phrases) => phrases.flat())
  .filter((steps) => steps.filter(({ what }) => what === 'fall silent').length <= 4)

async function tell(world: World, step: Step): Promise<void> {
  world.nextStep()
  switch (step.what) {
    case 'insert':
      await Promise.all([world.insert(step.fates), world.drain(step.during)])
      return
    case 'begin':
      return world.beginLate(step.fates)
    case 'end':
      return world.endLate(step.which, step.commits)
    case 'drain':
      return world.drain(step.count)
    case 'fall silent':
      return world.fallSilent(step.after)
    case 'wake':
      return world.wakeSilent()
    case 'advance':
      return world.advance(step.seconds)
  }
}

describe.each(stores)('the order of messages on $name', (kind) => {
  let outbox: OutboxStore
  beforeAll(async () => {
    outbox = await OutboxStore.open(kind)
    if (kind.name === 'sqlite') await outbox.query('PRAGMA busy_timeout = 0')
  })
  afterAll(() => outbox.close())

  it('is kept within every line, and everything comes to its end', async () => {
    await fc.assert(
      fc.asyncProperty(
        story,
        fc.constantFrom('hold' as const, 'skip' as const),
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 4 }),
        async (steps, onDead, batchSize, concurrency) => {
          await outbox.query('DELETE FROM outbox_messages')
          const world = new World(outbox, onDead, { batchSize, concurrency })
          try {
            for (const each of steps) await tell(world, each)
            await world.finish()
            expect(world.violations).toEqual([])
            const rows = await outbox.query(
              `SELECT id, payload, processed_at, dead_at, claimed_by, claimed_until, claim_count, retry_count, error
                 FROM outbox_messages ORDER BY created_at, id`,
            )
            expectOrder(world, rows, onDead)
            expectEnd(world, rows, onDead)
            if (!steps.some(({ what }) => what === 'fall silent')) expectOnce(world)
          } finally {
            await world.close()
          }
        },
      ),
      { numRuns: STORIES[kind.name], endOnFailure: isProof },
    )
  })
})

const messageIn = ({ payload }: Row): number => Number(Buffer.from(payload as Uint8Array).toString())

/** Nothing was begun before everything that stood before it, and could be seen, was done. */
function expectOrder(world: World, rows: readonly Row[], onDead: 'hold' | 'skip'): void {
  const places = new Map(rows.map((row, place) => [messageIn(row), place]))
  const lineOf = (message: number) => world.known[message]?.fate.line ?? null
  const done = new Set<number>()
  for (const { what, message, claimedIn } of world.journal) {
    if (what === 'success' || (what === 'death' && onDead === 'skip')) done.add(message)
    if (what !== 'begin' || lineOf(message) === null) continue
    for (const [other, place] of places) {
      const isBefore = lineOf(other) === lineOf(message) && place < (places.get(message) ?? -1)
      const committedIn = world.known[other]?.committedIn ?? null
      if (!isBefore || committedIn === null || committedIn >= claimedIn) continue
      expect(done.has(other), `${message} was begun before ${other} was done`).toBe(true)
    }
  }
}

/** Everything is delivered, or dead, or stands behind a dead one. */
function expectEnd(world: World, rows: readonly Row[], onDead: 'hold' | 'skip'): void {
  const committed = world.known.flatMap(({ committedIn }, message) => (committedIn === null ? [] : [message]))
  expect(rows.map(messageIn).toSorted((a, b) => a - b)).toEqual(committed)
  const succeeded = new Set(
    world.journal.filter(({ what }) => what === 'success').map(({ message }) => message),
  )
  const held = new Set<number | null>()
  for (const row of rows) {
    const message = messageIn(row)
    const fate = world.known[message]?.fate
    if (fate === undefined) throw new Error(`nobody wrote message ${message}`)
    const state = row.processed_at !== null ? 'processed' : row.dead_at !== null ? 'dead' : 'pending'
    const about = `message ${message} (${JSON.stringify(fate)}) is ${state}: ${JSON.stringify(row)}`
    expect([row.claimed_by, row.claimed_until], about).toEqual([null, null])
    const isDoomed = fate.refused || fate.failures > MAX_RETRIES
    if (state === 'pending') expect(fate.line !== null && held.has(fate.line), about).toBe(true)
    if (state === 'dead') expect(isDoomed, about).toBe(true)
    if (state === 'processed') {
      expect(succeeded.has(message), about).toBe(true)
      expect(fate.refused, about).toBe(false)
    }
    if (state === 'dead' && onDead === 'hold') held.add(fate.line)
  }
}

function expectOnce(world: World): void {
  const successes = world.journal.filter(({ what }) => what === 'success').map(({ message }) => message)
  expect(new Set(successes).size).toBe(successes.length)
}
