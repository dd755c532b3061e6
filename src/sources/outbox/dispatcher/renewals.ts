/** Looks after what is held for long: claims are renewed before they lapse, deliveries that take too long are cut short. */
import { type Alarm, later, microseconds } from '../../../core/clock.ts'
import { ClaimLost, DeliveryTimedOut } from '../transports/transport.ts'
import type { DispatcherContext } from './dispatcher.ts'
import type { Held } from './held.ts'

/** Looks per claim: a claim is renewed when half of it is over at the latest. */
const LOOKS_PER_CLAIM = 12n
/** Time-outs are noticed within a quarter of a second. */
const LONGEST_PAUSE_US = 250_000n
/** Claims renewed in one transaction at most. */
const MAX_RENEWED = 1_000

export class Renewals {
  readonly #context: DispatcherContext
  readonly #claimUs: bigint
  readonly #pauseUs: bigint
  #alarm: Alarm | undefined
  #renewing: Promise<void> | undefined
  /** The last renewal did not reach the store. */
  #isAway = false
  /** Messages whose claims it could not renew, because somebody has their rows locked. */
  #locked: ReadonlySet<string> = new Set()

  constructor(context: DispatcherContext) {
    this.#context = context
    this.#claimUs = microseconds(context.settings.claimSeconds)
    const pauseUs = this.#claimUs / LOOKS_PER_CLAIM
    this.#pauseUs = pauseUs < LONGEST_PAUSE_US ? pauseUs : LONGEST_PAUSE_US
  }

  /** Looks now and then, as long as something is held. */
  watch(): void {
    const { clock, held } = this.#context
    if (this.#alarm !== undefined || held.size === 0) return
    this.#alarm = clock.alarm(later(clock.now(), this.#pauseUs), () => {
      this.#alarm = undefined
      this.#look()
      this.watch()
    })
  }

  stop(): void {
    this.#alarm?.cancel()
    this.#alarm = undefined
  }

  #look(): void {
    const now = this.#context.clock.now()
    const isInDoubt = this.#isAway || this.#renewing !== undefined
    const renewable: Held[] = []
    for (const held of this.#context.held.values()) {
      const leftUs = held.claimedUntil - now
      if (held.deliverBy !== null && held.deliverBy <= now)
        held.cutShort?.(new DeliveryTimedOut('the delivery took too long and was cut short'))
      // Before another dispatcher begins to deliver it as well.
      const mayLapse = isInDoubt || this.#locked.has(held.message.id)
      if (mayLapse && leftUs <= this.#pauseUs * 2n) this.#lose(held, 'the claim could not be renewed')
      if (leftUs < (this.#claimUs * 2n) / 3n) renewable.push(held)
    }
    if (renewable.length > 0)
      this.#renewing ??= this.#renew(renewable).finally(() => {
        this.#renewing = undefined
      })
  }

  async #renew(renewable: readonly Held[]): Promise<void> {
    const { table, db, claimedBy, clock, log, name } = this.#context
    const lockedIds = new Set<string>()
    try {
      for (let from = 0; from < renewable.length; from += MAX_RENEWED) {
        const until = later(clock.now(), this.#claimUs)
        const some = renewable.slice(from, from + MAX_RENEWED)
        const ids = some.map(({ message }) => message.id)
        const { renewed, locked } = await (await table()).renew(db, ids, claimedBy, until)
        this.#isAway = false
        for (const held of some) {
          if (renewed.has(held.message.id)) held.claimedUntil = until
          else if (locked.has(held.message.id)) lockedIds.add(held.message.id)
          else this.#lose(held, 'another dispatcher has the message')
        }
      }
      this.#locked = lockedIds
    } catch (error) {
      this.#isAway = true
      log.warn({ err: error, outbox: name }, 'claims of outbox messages could not be renewed')
    }
  }

  /** Ends its delivery; if that was not begun, it never is. */
  #lose(held: Held, reason: string): void {
    held.claimedUntil = this.#context.clock.now()
    held.cutShort?.(new ClaimLost(reason))
  }
}
