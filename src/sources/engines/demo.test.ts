import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import { signatureOf } from '../../core/signature.ts'
import { describeError } from '../../core/thrown.ts'
import { Chance } from '../../demo/story/chance.ts'
import { errorOf } from '../../demo/story/shop.ts'
import { billing, ENGINE_ROLES, Periods, payments } from './demo-roles.ts'

const NOW = instant(1_798_804_800_000_000n)
const LATER = instant(1_898_804_800_000_000n)

describe('what goes wrong with engines in a demo', () => {
  const world = (isOut: boolean) => ({ periods: new Periods(), isOut: () => isOut })
  const messageOf = (role: (typeof ENGINE_ROLES)[number], isSick: boolean, seed: number, now = NOW) =>
    JSON.parse(role.message({ chance: new Chance(seed), now }, isSick).toString())

  it('has one signature for each cause, whatever varies in it', () => {
    const signatures = ENGINE_ROLES.map((role) => {
      const [one, other] = [messageOf(role, true, 1), messageOf(role, true, 2, LATER)].map((message) => {
        const trouble = role.judge(message, world(true))
        return trouble === null ? null : signatureOf(trouble).fingerprint
      })
      expect(one).toBe(other)
      return one
    })
    expect(new Set(signatures).size).toBe(ENGINE_ROLES.length)
  })

  it('is described the same when it is thrown', () => {
    const trouble = payments.judge(messageOf(payments, true, 1), world(true))
    if (trouble === null) throw new Error('nothing is wrong with a payment')
    expect(describeError(errorOf(trouble))).toEqual(trouble)
  })

  it('is told from the message alone, save for what the world decides', () => {
    for (const role of ENGINE_ROLES) {
      expect(role.judge(messageOf(role, true, 1), world(true))).not.toBeNull()
      expect(role.judge(messageOf(role, false, 1), world(false))).toBeNull()
    }
  })
})

describe('an invoice of last month', () => {
  const invoiceAt = (now: typeof NOW) =>
    JSON.parse(billing.message({ chance: new Chance(1), now }, true).toString())
  const isLocked = (periods: Periods, now: typeof NOW): boolean =>
    billing.judge(invoiceAt(now), { periods, isOut: () => false }) !== null

  it('finds its period open once it has died', () => {
    const periods = new Periods()
    periods.begin(NOW)
    expect(isLocked(periods, NOW)).toBe(true)
    periods.died(invoiceAt(NOW).invoice)
    expect(isLocked(periods, NOW)).toBe(false)
  })

  it('finds it open too when it is older than this run of the demo', () => {
    const periods = new Periods()
    periods.begin(NOW)
    expect(isLocked(periods, instant(NOW - 1_000_000n))).toBe(false)
  })
})

describe('the payload of a payment', () => {
  it('holds a whole number that no double can hold', () => {
    const text = payments.message({ chance: new Chance(5), now: NOW }, false).toString()
    const digits = /"account":(\d+),/.exec(text)?.[1] ?? ''
    expect(BigInt(digits) > BigInt(Number.MAX_SAFE_INTEGER)).toBe(true)
    expect(String(JSON.parse(text).account)).not.toBe(digits)
  })
})
