/** Random steps of one client on a queue and its dead queue. */
import fc from 'fast-check'

type Target = { readonly on: 'main' | 'dead' }

export type Step = Target &
  (
    | { readonly step: 'produce'; readonly delaysMs: readonly number[] }
    /** Several leases that wait while the queue is paused and are served in one cycle. */
    | { readonly step: 'lease'; readonly sizes: readonly number[] }
    | { readonly step: 'complete' | 'delete'; readonly picks: Picks }
    | {
        readonly step: 'retry'
        readonly picks: Picks
        readonly inMs: number | null
        readonly dead: boolean
      }
    | { readonly step: 'extend'; readonly picks: Picks; readonly byMs: number }
    | {
        readonly step: 'clear'
        readonly queue: boolean
        readonly scheduled: boolean
        readonly destructive: boolean
      }
    | { readonly step: 'import'; readonly partition: number; readonly items: readonly ImportedStep[] }
    | {
        readonly step: 'update'
        readonly maxAttempts: number
        readonly keepDeadQueue: boolean
        readonly leaseMs: number
      }
    | { readonly step: 'advance'; readonly ms: number }
  )

export interface Picks {
  readonly among: 'leased' | 'known'
  readonly places: readonly number[]
}

export interface ImportedStep {
  readonly source: number
  readonly leasedForMs: number | null
  readonly expiresInMs: number | null
  readonly attempts: number
}

const on = fc.oneof({ weight: 2, arbitrary: fc.constant('main' as const) }, fc.constant('dead' as const))
const main = fc.constant('main' as const)
/** Which ids a step is about: of the leases that are held now, or of everything that was ever seen. */
const picks = fc.record({
  among: fc.oneof({ weight: 3, arbitrary: fc.constant('leased' as const) }, fc.constant('known' as const)),
  places: fc.uniqueArray(fc.oneof({ weight: 3, arbitrary: fc.nat(3) }, fc.nat(20)), {
    minLength: 1,
    maxLength: 3,
  }),
})
const delayMs = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.constantFrom(99, 100, 700, 3_000))

const imported = fc.record({
  source: fc.nat(3),
  leasedForMs: fc.constantFrom(null, null, -50, 400),
  expiresInMs: fc.constantFrom(null, null, -1, 900),
  attempts: fc.nat(3),
})

export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      step: fc.constant('produce' as const),
      on,
      delaysMs: fc.array(delayMs, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      step: fc.constant('lease' as const),
      on,
      sizes: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ step: fc.constant('complete' as const), on, picks }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('delete' as const), on, picks }) },
  {
    weight: 4,
    arbitrary: fc.record({
      step: fc.constant('retry' as const),
      on,
      picks,
      inMs: fc.constantFrom(null, null, 99, 100, 800),
      dead: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('extend' as const),
      on,
      picks,
      byMs: fc.constantFrom(200, 1_000, 5_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      step: fc.constant('clear' as const),
      on,
      queue: fc.boolean(),
      scheduled: fc.boolean(),
      destructive: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('import' as const),
      on,
      partition: fc.nat(2),
      items: fc.array(imported, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      step: fc.constant('update' as const),
      on: main,
      maxAttempts: fc.nat(3),
      keepDeadQueue: fc.boolean(),
      leaseMs: fc.constantFrom(500, 1_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      step: fc.constant('advance' as const),
      on: main,
      ms: fc.oneof(fc.constantFrom(1, 7, 8, 100, 500, 507, 508, 1_000, 1_007, 1_008, 4_000), fc.nat(2_000)),
    }),
  },
)
