/** Random steps of one client on a queue and its dead queue. */
import fc from 'fast-check'
import { atMost, kindOf, mostly, stepsOf } from '../world/model.ts'
import type { Desk } from './desk.ts'

const on = fc.constantFrom('main' as const, 'main' as const, 'dead' as const)
const picks = fc.record({
  among: mostly<'leased' | 'known'>(3, 'leased', 'known'),
  places: fc.uniqueArray(fc.oneof({ weight: 3, arbitrary: fc.nat(3) }, fc.nat(20)), {
    minLength: 1,
    maxLength: 3,
  }),
})
const imported = fc.record({
  source: fc.nat(3),
  leasedForMs: fc.constantFrom(null, null, -50, 400),
  expiresInMs: fc.constantFrom(null, null, -1, 900),
  attempts: fc.nat(3),
})
/** Around the ends of leases, with and without their grace, and anywhere. */
const ms = fc.oneof(fc.constantFrom(1, 7, 8, 100, 500, 507, 508, 1_000, 1_007, 1_008, 4_000), fc.nat(2_000))

const kind = kindOf<Desk>()

export const step = stepsOf<Desk>({
  produce: kind(5, { on, delaysMs: atMost(6, mostly(4, 0, 99, 100, 700, 3_000)) }, (desk, { on, delaysMs }) =>
    desk.produce(on, delaysMs),
  ),
  lease: kind(6, { on, sizes: atMost(4, fc.integer({ min: 1, max: 6 })) }, (desk, { on, sizes }) =>
    desk.lease(on, sizes),
  ),
  complete: kind(3, { on, picks }, (desk, { on, picks }) => desk.complete(on, picks)),
  delete: kind(1, { on, picks }, (desk, { on, picks }) => desk.delete(on, picks)),
  retry: kind(
    4,
    { on, picks, inMs: fc.constantFrom(null, null, 99, 100, 800), dead: mostly<boolean>(3, false, true) },
    (desk, { on, picks, inMs, dead }) => desk.retry(on, picks, inMs, dead),
  ),
  extend: kind(2, { on, picks, byMs: fc.constantFrom(200, 1_000, 5_000) }, (desk, { on, picks, byMs }) =>
    desk.extend(on, picks, byMs),
  ),
  clear: kind(
    1,
    { on, queue: fc.boolean(), scheduled: fc.boolean(), destructive: fc.boolean() },
    (desk, { on, ...cleared }) => desk.clear(on, cleared),
  ),
  import: kind(
    2,
    { on, partition: fc.nat(2), items: atMost(3, imported) },
    (desk, { on, partition, items }) => desk.import(on, partition, items),
  ),
  update: kind(
    1,
    { maxAttempts: fc.nat(3), keepsDeadQueue: fc.boolean(), leaseMs: fc.constantFrom(500, 1_000) },
    (desk, { maxAttempts, keepsDeadQueue, leaseMs }) => desk.update(maxAttempts, keepsDeadQueue, leaseMs),
  ),
  advance: kind(6, { ms }, (desk, { ms }) => desk.advance(ms)),
})
