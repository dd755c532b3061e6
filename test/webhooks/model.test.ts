/**
 * The law of dead jobs: whatever is done, in whatever order and by whichever server, every server tells as many as there are, and as
 * many as the rules say there should be.
 */
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { sizeOf } from '../world/limits.ts'
import { stores } from '../world/stores.ts'
import { perform, type Step, steps } from './model/steps.ts'
import { World } from './model/world.ts'

/** Ten times more, for a night. */
const RUNS = sizeOf(3, 30)
const STEPS = 20

describe.each(stores)('dead jobs in random histories on $name', (store) => {
  it('are what everybody says, after every step', async () => {
    const world = await World.open(store, store.name === 'postgres' ? 2 : 1)
    const told: Step[] = []
    try {
      await fc.assert(
        // One history in several pieces: a world with a past is a better test than a new one.
        fc.asyncProperty(fc.array(steps, { minLength: STEPS, maxLength: STEPS }), async (history) => {
          for (const step of history) {
            told.push(step)
            await perform(world, step)
          }
          await world.verify()
        }),
        { numRuns: RUNS, endOnFailure: true },
      )
    } catch (error) {
      const last = told.slice(-12).map(({ kind, pick, by }) => `${kind} (${pick}) by ${by}`)
      throw new Error(`after ${told.length} steps, the last of them ${last.join(', ')}`, { cause: error })
    } finally {
      await world.close()
    }
  })
})
