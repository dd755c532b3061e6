/**
 * The kit of models: random programs of steps. A model writes its kinds of steps as one table: how often each comes, what is drawn for it,
 * and what it does to the world that the model keeps.
 */
import fc from 'fast-check'
import { BartlebyError } from '../../src/core/errors.ts'

export interface Step<World> {
  perform(world: World): Promise<void>
}

interface Kind<World> {
  readonly weight: number
  /** The steps of this kind, under the name that it has in the table. */
  steps(name: string): fc.Arbitrary<Step<World>>
}

/** Makes kinds of steps on a world. */
export const kindOf =
  <World>() =>
  <Fields>(
    weight: number,
    fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
    perform: (world: World, fields: Fields) => unknown,
  ): Kind<World> => ({
    weight,
    steps: (name) =>
      fc.record<Fields>(fields).map((drawn) => ({
        async perform(world) {
          await perform(world, drawn)
        },
        [fc.toStringMethod]: () => `${name} ${fc.stringify(drawn)}`,
      })),
  })

/** Steps of these kinds. */
export const stepsOf = <World>(kinds: Readonly<Record<string, Kind<World>>>): fc.Arbitrary<Step<World>> =>
  fc.oneof(...Object.entries(kinds).map(([name, { weight, steps }]) => ({ weight, arbitrary: steps(name) })))

/** Mostly this value, else one of the others. */
export const mostly = <T>(weight: number, usual: T, ...others: readonly [T, ...T[]]): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, fc.constantFrom(...others))

export const atMost = <T>(maxLength: number, each: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.array(each, { minLength: 1, maxLength })

/** How many programs somebody asked for, who has the time to see a failure made smaller. */
const ASKED = Number(process.env.BARTLEBY_MODEL_RUNS ?? 0)

/** Performs so many programs; what is wrong is thrown. */
export const checkPrograms = <Program>(
  programs: fc.Arbitrary<Program>,
  runs: number,
  perform: (program: Program) => Promise<void>,
  { shrinks = ASKED > 0 } = {},
): Promise<void> =>
  fc.assert(fc.asyncProperty(programs, perform), { numRuns: ASKED || runs, endOnFailure: !shrinks })

/** Refusals are part of a program: leases end, others settle them, redrives are over. */
export async function unlessRefused(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    // A refusal has no cause; a failure that wears an error code does.
    if (!(error instanceof BartlebyError) || error.cause !== undefined) throw error
  }
}
