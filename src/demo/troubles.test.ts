import { describe, expect, it } from 'vitest'
import { instant } from '../core/clock.ts'
import { signatureOf } from '../core/signature.ts'
import { describeError } from '../core/thrown.ts'
import { Chance } from './chance.ts'
import { billing, ENGINE_ROLES } from './engine-roles.ts'
import { payment } from './payloads.ts'
import * as troubles from './troubles.ts'
import { World } from './world.ts'

const NOW = instant(1_798_804_800_000_000n)
const fingerprint = (trouble: Parameters<typeof signatureOf>[0]): string => signatureOf(trouble).fingerprint

describe('what goes wrong in a demo', () => {
  it('has one signature for each cause, whatever varies in it', () => {
    const pairs = [
      [troubles.gatewayTimeout(4), troubles.gatewayTimeout(211)],
      [troubles.periodLocked('INV-1', '2026-01'), troubles.periodLocked('INV-98765432', '2027-12')],
      [troubles.vaultRefused('kv'), troubles.vaultRefused('kv-north-2')],
      [troubles.rateLimited('a.example'), troubles.rateLimited('b.shop.example')],
      [troubles.schemaViolation('sev5'), troubles.schemaViolation('urgent')],
      [troubles.customerExists('a@example.com'), troubles.customerExists('b.c@example.org')],
      [troubles.feedUnreadable(1), troubles.feedUnreadable(981)],
      [troubles.templateBroken('welcome.html'), troubles.templateBroken('bye.html')],
      [troubles.noSite(), troubles.noSite()],
    ] as const
    for (const [one, other] of pairs) expect(fingerprint(one)).toBe(fingerprint(other))
    expect(new Set(pairs.map(([one]) => fingerprint(one))).size).toBe(pairs.length)
  })

  it('is described the same when it is thrown', () => {
    const trouble = troubles.gatewayTimeout(7)
    expect(describeError(troubles.errorOf(trouble))).toEqual(trouble)
  })

  it('is told from the message alone, save for what the world decides', () => {
    const world = new World()
    world.gatewayIsDown = true
    for (const { well, sick, judge } of ENGINE_ROLES) {
      const occasion = { chance: new Chance(1), now: NOW }
      expect(judge(JSON.parse(sick(occasion).toString()), world)).not.toBeNull()
      world.gatewayIsDown = false
      expect(judge(JSON.parse(well(occasion).toString()), world)).toBeNull()
      world.gatewayIsDown = true
    }
  })
})

describe('an invoice of last month', () => {
  const invoiceAt = (now: typeof NOW) => JSON.parse(billing.sick({ chance: new Chance(1), now }).toString())
  const isLocked = (world: World, now: typeof NOW): boolean => billing.judge(invoiceAt(now), world) !== null

  it('finds its period open once it has died', () => {
    const world = new World()
    world.begin(NOW)
    expect(isLocked(world, NOW)).toBe(true)
    world.died(invoiceAt(NOW).invoice)
    expect(isLocked(world, NOW)).toBe(false)
  })

  it('finds it open too when it is older than this run of the demo', () => {
    const world = new World()
    world.begin(NOW)
    expect(isLocked(world, instant(NOW - 1_000_000n))).toBe(false)
  })
})

describe('the payload of a payment', () => {
  it('holds a whole number that no double can hold', () => {
    const text = payment({ chance: new Chance(5), now: NOW }).toString()
    const digits = /"account":(\d+),/.exec(text)?.[1] ?? ''
    expect(BigInt(digits) > BigInt(Number.MAX_SAFE_INTEGER)).toBe(true)
    expect(String(JSON.parse(text).account)).not.toBe(digits)
  })
})
