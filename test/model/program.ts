/** Random programs: what several clients ask of one queue, and how the clock moves meanwhile. */
import fc from 'fast-check'

export type Step =
  | { readonly step: 'produce'; readonly delaysMs: readonly number[] }
  /** Gives up after `patience` turns of the event loop. */
  | { readonly step: 'lease'; readonly batchSize: number; readonly patience: number }
  | { readonly step: 'complete' | 'delete'; readonly picks: readonly number[] }
  | {
      readonly step: 'retry'
      readonly picks: readonly number[]
      readonly inMs: number | null
      readonly dead: boolean
    }
  | { readonly step: 'extend'; readonly picks: readonly number[]; readonly byMs: number }
  | { readonly step: 'rest'; readonly turns: number }
  | { readonly step: 'advance'; readonly ms: number }

export interface Program {
  readonly leaseMs: number
  readonly expireMs: number
  readonly maxAttempts: number
  readonly hasDeadQueue: boolean
  /** The steps of each client; a client takes one after the other, the clients run at the same time. */
  readonly clients: readonly (readonly Step[])[]
  readonly clock: readonly Step[]
}

/** Which of the leases seen so far a step is about, counted from the latest. */
const picks = fc.uniqueArray(fc.oneof({ weight: 4, arbitrary: fc.nat(4) }, fc.nat(40)), {
  minLength: 1,
  maxLength: 3,
})

const produce = fc.record({
  step: fc.constant('produce' as const),
  delaysMs: fc.array(fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.constantFrom(50, 400, 3_000)), {
    minLength: 1,
    maxLength: 6,
  }),
})

const lease = fc.record({
  step: fc.constant('lease' as const),
  batchSize: fc.integer({ min: 1, max: 8 }),
  patience: fc.integer({ min: 1, max: 30 }),
})

const rest = fc.record({ step: fc.constant('rest' as const), turns: fc.integer({ min: 1, max: 12 }) })

const clientStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: produce },
  { weight: 6, arbitrary: lease },
  { weight: 3, arbitrary: fc.record({ step: fc.constant('complete' as const), picks }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('delete' as const), picks }) },
  {
    weight: 4,
    arbitrary: fc.record({
      step: fc.constant('retry' as const),
      picks,
      inMs: fc.constantFrom(null, null, 20, 600, 2_000),
      dead: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('extend' as const),
      picks,
      byMs: fc.constantFrom(300, 1_000, 4_000),
    }),
  },
  { weight: 2, arbitrary: rest },
)

const clockStep: fc.Arbitrary<Step> = fc.oneof(rest, {
  weight: 2,
  arbitrary: fc.record({
    step: fc.constant('advance' as const),
    ms: fc.oneof(fc.constantFrom(1, 8, 500, 1_000, 1_008, 2_500, 6_000), fc.nat(1_500)),
  }),
})

export const program: fc.Arbitrary<Program> = fc.record({
  leaseMs: fc.constantFrom(1_000, 4_000),
  expireMs: fc.constantFrom(4_000, 9_000, 3_600_000),
  maxAttempts: fc.constantFrom(0, 1, 2, 3),
  hasDeadQueue: fc.boolean(),
  clients: fc.array(fc.array(clientStep, { minLength: 4, maxLength: 16 }), { minLength: 2, maxLength: 5 }),
  clock: fc.array(clockStep, { maxLength: 14 }),
})
