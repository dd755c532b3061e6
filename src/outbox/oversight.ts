/** Looks after what is held for long: claims are renewed before they lapse, deliveries that take too long are cut short. */
import { type Alarm, type Clock, type Instant, later } from '../core/clock.ts'
import type { Hands, Held } from './hands.ts'
import { ClaimLost, DeliveryTimedOut } from './transport.ts'

export interface OversightOptions {
  readonly claimSeconds: number
  /** Renews claims; gives the ids that are still ours, or null when nobody knows: the store is away. */
  readonly renew: (ids: readonly string[], until: Instant) => Promise<ReadonlySet<string> | null>
}

/** Looks per claim: a claim is renewed when half of it is over at the latest. */
const LOOKS_PER_CLAIM = 12n
/** Claims renewed in one transaction at most. */
const MAX_RENEWED = 1_000

export class Oversight {
  readonly #clock: Clock
  readonly #hands: Hands
  readonly #options: OversightOptions
  readonly #claimUs: bigint
  #alarm: Alarm | undefined
  #renewing: Promise<void> | undefined
  /** The last renewal did not reach the store. */
  #isAway = false

  constructor(clock: Clock, hands: Hands, options: OversightOptions) {
    this.#clock = clock
    this.#hands = hands
    this.#options = options
    this.#claimUs = BigInt(Math.round(options.claimSeconds * 1e6))
  }

  /** Looks now and then, as long as something is held. */
  watch(): void {
    if (this.#alarm !== undefined || this.#hands.size === 0) return
    this.#alarm = this.#clock.alarm(later(this.#clock.now(), this.#pauseUs()), () => {
      this.#alarm = undefined
      this.#look()
      this.watch()
    })
  }

  stop(): void {
    this.#alarm?.cancel()
    this.#alarm = undefined
  }

  #pauseUs(): bigint {
    const pauseUs = this.#claimUs / LOOKS_PER_CLAIM
    // Time-outs are noticed within a quarter of a second.
    return pauseUs < 250_000n ? pauseUs : 250_000n
  }

  #look(): void {
    const now = this.#clock.now()
    const isInDoubt = this.#isAway || this.#renewing !== undefined
    const renewable: Held[] = []
    for (const held of this.#hands.values()) {
      const leftUs = held.claimedUntil - now
      if (held.deliverBy !== null && held.deliverBy <= now)
        held.cutShort?.(new DeliveryTimedOut('the delivery took too long and was cut short'))
      // Before another dispatcher begins to deliver it as well.
      if (isInDoubt && leftUs <= this.#pauseUs() * 2n) this.#lose(held, 'the claim could not be renewed')
      if (leftUs < (this.#claimUs * 2n) / 3n) renewable.push(held)
    }
    if (renewable.length > 0)
      this.#renewing ??= this.#renew(renewable).finally(() => {
        this.#renewing = undefined
      })
  }

  async #renew(renewable: readonly Held[]): Promise<void> {
    for (let from = 0; from < renewable.length; from += MAX_RENEWED) {
      const until = later(this.#clock.now(), this.#claimUs)
      const some = renewable.slice(from, from + MAX_RENEWED)
      const ours = await this.#options.renew(
        some.map(({ message }) => message.id),
        until,
      )
      this.#isAway = ours === null
      if (ours === null) return
      for (const held of some) {
        if (ours.has(held.message.id)) held.claimedUntil = until
        else this.#lose(held, 'another dispatcher has the message')
      }
    }
  }

  /** Ends its delivery; if that was not begun, it never is. */
  #lose(held: Held, reason: string): void {
    held.claimedUntil = this.#clock.now()
    held.cutShort?.(new ClaimLost(reason))
  }
}
