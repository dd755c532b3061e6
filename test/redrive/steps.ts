/** What may happen to letters and redrives, in any order. */
import fc from 'fast-check'
import type { RedriveAction, Terms } from '../../src/redrive/redrive.ts'

export const QUEUES = ['orders', 'mails'] as const
export type QueueName = (typeof QUEUES)[number]

/** Which letters a plan is about. */
export type Target = 'all' | 'keyed' | 'plain' | QueueName

export type Step =
  | { readonly does: 'die'; readonly queue: QueueName; readonly letters: number }
  | { readonly does: 'report'; readonly queue: QueueName; readonly keys: readonly number[] }
  | {
      readonly does: 'plan'
      readonly seat: number
      readonly target: Target
      readonly action: RedriveAction
      readonly terms: Terms
      readonly starts: boolean
    }
  | {
      readonly does: 'start' | 'pause' | 'resume' | 'cancel'
      readonly seat: number
      readonly redrive: number
    }
  | { readonly does: 'rate'; readonly seat: number; readonly redrive: number; readonly rate: number | null }
  | { readonly does: 'advance'; readonly ms: number }
  | { readonly does: 'work'; readonly queue: QueueName | 'aside'; readonly dying: 'none' | 'some' | 'all' }
  | { readonly does: 'retry' | 'discard' | 'restore'; readonly letter: number }
  | { readonly does: 'delete' | 'create' }
  | { readonly does: 'lose' | 'replace'; readonly seat: number }
  | { readonly does: 'find' }

const queue = fc.constantFrom(...QUEUES)
const seat = fc.nat(1)
const nth = fc.nat(20)
const rate = fc.option(fc.constantFrom(0.5, 2, 10, 1_000), { freq: 2 })

const terms: fc.Arbitrary<Terms> = fc.record({
  rate,
  canary: fc.option(
    fc.record({
      letters: fc.integer({ min: 1, max: 4 }),
      confirmPercent: fc.constantFrom(1, 50, 100),
      waitSeconds: fc.constantFrom(1, 30),
    }),
    { freq: 3 },
  ),
  stopRule: fc.option(
    fc.record({ percent: fc.constantFrom(0, 20, 60), of: fc.integer({ min: 1, max: 6 }) }),
    {
      freq: 3,
    },
  ),
  order: fc.oneof({ weight: 4, arbitrary: fc.constant('key' as const) }, fc.constantFrom('capture', 'none')),
})

const action: fc.Arbitrary<RedriveAction> = fc.oneof(
  { weight: 6, arbitrary: fc.constant('retry' as const) },
  fc.constantFrom('move', 'discard', 'restore'),
)

const plan: fc.Arbitrary<Step> = fc
  .record({
    seat,
    target: fc.constantFrom<Target>('all', 'all', 'keyed', 'plain', ...QUEUES),
    action,
    terms,
    starts: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
  })
  .map(({ terms, ...rest }) => {
    const isSending = rest.action === 'retry' || rest.action === 'move'
    return { does: 'plan', ...rest, terms: isSending ? terms : { ...terms, canary: null, stopRule: null } }
  })

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('die'), queue, letters: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('report'),
      queue,
      keys: fc.array(fc.nat(2), { minLength: 1, maxLength: 6 }),
    }),
  },
  { weight: 5, arbitrary: plan },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constantFrom('start', 'pause', 'resume', 'resume', 'cancel'),
      seat,
      redrive: nth,
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('rate'), seat, redrive: nth, rate }) },
  {
    weight: 8,
    arbitrary: fc.record({ does: fc.constant('advance'), ms: fc.constantFrom(10, 300, 1_100, 4_500) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant('work'),
      queue: fc.constantFrom(...QUEUES, 'aside'),
      dying: fc.constantFrom('none', 'some', 'all'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constantFrom('retry', 'discard', 'restore'), letter: nth }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('delete', 'create') }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constantFrom('lose', 'replace'), seat }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('find') }) },
)

/** A day at two offices: there are letters, and the first redrive comes soon. */
export const days: fc.Arbitrary<readonly Step[]> = fc
  .tuple(
    fc.array(fc.nat(2), { minLength: 3, maxLength: 8 }),
    plan,
    fc.array(step, { minLength: 10, maxLength: 30 }),
  )
  .map(([keys, first, others]) => [
    { does: 'die', queue: 'orders', letters: 4 },
    { does: 'report', queue: 'orders', keys },
    { does: 'report', queue: 'mails', keys: [0, 1] },
    first,
    ...others,
  ])
