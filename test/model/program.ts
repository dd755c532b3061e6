/** Random programs: what several clients ask of one queue, and how the clock moves meanwhile. */
import fc from 'fast-check'
import { atMost, kindOf, mostly, type Step, stepsOf } from '../world/model.ts'
import type { Client } from './perform.ts'

export interface Program {
  readonly leaseMs: number
  readonly expireMs: number
  readonly maxAttempts: number
  readonly hasDeadQueue: boolean
  /** The steps of each client; a client takes one after the other, the clients run at the same time. */
  readonly clients: readonly (readonly Step<Client>[])[]
  readonly clock: readonly Step<Client>[]
}

/** Which of the leases seen so far a step is about, counted from the latest. */
const picks = fc.uniqueArray(fc.oneof({ weight: 4, arbitrary: fc.nat(4) }, fc.nat(40)), {
  minLength: 1,
  maxLength: 3,
})

const kind = kindOf<Client>()

const rest = (weight: number) =>
  kind(weight, { turns: fc.integer({ min: 1, max: 12 }) }, (client, { turns }) => client.rest(turns))

const clientStep = stepsOf<Client>({
  produce: kind(4, { delaysMs: atMost(6, mostly(5, 0, 50, 400, 3_000)) }, (client, { delaysMs }) =>
    client.produce(delaysMs),
  ),
  lease: kind(
    6,
    { batchSize: fc.integer({ min: 1, max: 8 }), patience: fc.integer({ min: 1, max: 30 }) },
    (client, { batchSize, patience }) => client.lease(batchSize, patience),
  ),
  complete: kind(3, { picks }, (client, { picks }) => client.complete(picks)),
  delete: kind(1, { picks }, (client, { picks }) => client.delete(picks)),
  retry: kind(
    4,
    { picks, inMs: fc.constantFrom(null, null, 20, 600, 2_000), dead: mostly<boolean>(4, false, true) },
    (client, { picks, inMs, dead }) => client.retry(picks, inMs, dead),
  ),
  extend: kind(2, { picks, byMs: fc.constantFrom(300, 1_000, 4_000) }, (client, { picks, byMs }) =>
    client.extend(picks, byMs),
  ),
  rest: rest(2),
})

const clockStep = stepsOf<Client>({
  rest: rest(1),
  advance: kind(
    2,
    { ms: fc.oneof(fc.constantFrom(1, 8, 500, 1_000, 1_008, 2_500, 6_000), fc.nat(1_500)) },
    (client, { ms }) => client.advance(ms),
  ),
})

export const program: fc.Arbitrary<Program> = fc.record({
  leaseMs: fc.constantFrom(1_000, 4_000),
  expireMs: fc.constantFrom(4_000, 9_000, 3_600_000),
  maxAttempts: fc.constantFrom(0, 1, 2, 3),
  hasDeadQueue: fc.boolean(),
  clients: fc.array(fc.array(clientStep, { minLength: 4, maxLength: 16 }), { minLength: 2, maxLength: 5 }),
  clock: fc.array(clockStep, { maxLength: 14 }),
})
