/** Instants in tests: microseconds since 1970 as bigint, written as the contract writes them. */
import type { Wire } from './wire.ts'

export const us = (n: number | bigint): bigint => BigInt(n)
export const ms = (n: number): bigint => BigInt(n) * 1_000n
export const seconds = (n: number): bigint => BigInt(n) * 1_000_000n
export const minutes = (n: number): bigint => seconds(n * 60)
export const hours = (n: number): bigint => minutes(n * 60)

/** About the present; good enough to freeze a clock at. */
export const systemNow = (): bigint => BigInt(Math.floor((performance.timeOrigin + performance.now()) * 1000))

export const ZERO_TIME = '0001-01-01T00:00:00Z'

/** RFC 3339 in UTC with 0, 3 or 6 fractional digits, whichever is the fewest that says it. */
export function rfc3339(instant: bigint): string {
  const fraction = ((instant % 1_000_000n) + 1_000_000n) % 1_000_000n
  const whole = new Date(Number((instant - fraction) / 1000n)).toISOString().slice(0, 19)
  if (fraction === 0n) return `${whole}Z`
  const digits = String(fraction).padStart(6, '0')
  return `${whole}.${digits.endsWith('000') ? digits.slice(0, 3) : digits}Z`
}

/** Microseconds since 1970; finer digits are cut off. */
export function instantOf(text: string): bigint {
  const [, whole, fraction = ''] = /^(.+?)(?:\.(\d+))?Z$/.exec(text) ?? []
  return BigInt(Date.parse(`${whole}Z`)) * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'))
}

/** The server's clock under the control of a test. It only ever moves forward. */
export class TestClock {
  readonly #wire: () => Wire
  #now = 0n

  constructor(wire: () => Wire) {
    this.#wire = wire
  }

  get now(): bigint {
    return this.#now
  }

  /** The RFC 3339 text of the instant `offset` from now. */
  at(offset: bigint): string {
    return rfc3339(this.#now + offset)
  }

  async freeze(at: bigint): Promise<void> {
    await this.#command({ freeze: rfc3339(at) })
    this.#now = at
  }

  /** Moves time; everything that is due has happened when this resolves. */
  async advance(by: bigint): Promise<void> {
    await this.#command({ advance: `${by}us` })
    this.#now += by
  }

  async advanceTo(at: bigint): Promise<void> {
    await this.advance(at - this.#now)
  }

  async #command(body: { freeze: string } | { advance: string }): Promise<void> {
    const answer = await this.#wire().control('/v1/test.clock', body)
    if (answer.status !== 200) throw new Error(`test.clock: ${JSON.stringify(answer.body)}`)
  }
}
