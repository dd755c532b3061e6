/** What may happen to letters and redrives, in any order. */
import fc from 'fast-check'
import type { RedriveAction, Terms } from '../../src/redrive/redrive.ts'
import { atMost, kindOf, mostly, type Step, stepsOf } from '../world/model.ts'
import { ACTOR, type Day, QUEUES, type Target } from './day.ts'

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
    { freq: 3 },
  ),
  order: mostly<Terms['order']>(4, 'key', 'capture', 'none'),
})

const kind = kindOf<Day>()

const plan = kind(
  5,
  {
    seat,
    target: fc.constantFrom<Target>('all', 'all', 'keyed', 'plain', ...QUEUES),
    action: mostly<RedriveAction>(6, 'retry', 'move', 'discard', 'restore'),
    terms,
    starts: mostly<boolean>(4, true, false),
  },
  (day, given) => day.plan(given),
)

const step = stepsOf<Day>({
  die: kind(2, { queue, letters: fc.integer({ min: 1, max: 3 }) }, (day, { queue, letters }) =>
    day.die(queue, letters),
  ),
  report: kind(3, { queue, keys: atMost(6, fc.nat(2)) }, (day, { queue, keys }) => day.report(queue, keys)),
  plan,
  goOn: kind(
    3,
    { seat, nth, act: fc.constantFrom('start' as const, 'resume' as const, 'resume' as const) },
    (day, { seat, nth, act }) => day.redrive(seat, nth, (redrives, id) => redrives[act](id, ACTOR)),
  ),
  halt: kind(
    2,
    { seat, nth, act: fc.constantFrom('pause' as const, 'cancel' as const) },
    (day, { seat, nth, act }) => day.redrive(seat, nth, (redrives, id) => redrives[act](id, ACTOR, null)),
  ),
  rate: kind(1, { seat, nth, rate }, (day, { seat, nth, rate }) =>
    day.redrive(seat, nth, (redrives, id) => redrives.setRate(id, rate, ACTOR)),
  ),
  advance: kind(8, { ms: fc.constantFrom(10, 300, 1_100, 4_500) }, ({ offices }, { ms }) =>
    offices.advance(BigInt(ms) * 1_000n),
  ),
  work: kind(
    5,
    { queue: fc.constantFrom(...QUEUES, 'aside'), dying: fc.constantFrom('none', 'some', 'all') },
    (day, { queue, dying }) => day.work(queue, dying),
  ),
  byHand: kind(
    3,
    { does: fc.constantFrom('retry' as const, 'discard' as const, 'restore' as const), nth },
    (day, { does, nth }) => day.byHand(does, nth),
  ),
  mails: kind(1, { goes: fc.boolean() }, (day, { goes }) =>
    goes ? day.offices.at(0).queues.delete({ queueName: 'mails', force: true }) : day.create('mails'),
  ),
  lose: kind(1, { seat }, ({ offices }, { seat }) => offices.lose(seat)),
  replace: kind(1, { seat }, ({ offices }, { seat }) => offices.replace(seat)),
  find: kind(1, {}, ({ offices }) => offices.find()),
})

/** A day at two offices: there are letters, and the first redrive comes soon. */
export const days: fc.Arbitrary<readonly Step<Day>[]> = fc
  .tuple(
    fc.array(fc.nat(2), { minLength: 3, maxLength: 8 }),
    plan.steps('plan'),
    fc.array(step, { minLength: 10, maxLength: 30 }),
  )
  .map(([keys, first, others]) => [
    { perform: (day) => day.die('orders', 4) },
    { perform: (day) => day.report('orders', keys) },
    { perform: (day) => day.report('mails', [0, 1]) },
    first,
    ...others,
  ])
