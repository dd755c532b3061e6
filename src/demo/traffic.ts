/**
 * What happens in the invented shop from now on: every other second somebody orders, pays or signs up, and some of it fails. It
 * is little on purpose, and stops while more letters wait than anybody would read.
 */
import { microseconds } from '../core/clock.ts'
import { pause } from '../core/waiting.ts'
import type { Office } from '../office.ts'
import type { Chance } from './chance.ts'
import { billing, ENGINE_ROLES, type EngineRole, payments } from './engine-roles.ts'
import type { Partners } from './partners.ts'
import { label, type Occasion, oldInvoice, order, signUp } from './payloads.ts'
import { CLOSED_WAREHOUSE, SLOW_WAREHOUSE, WAREHOUSES } from './plain-queues.ts'
import { REFUSED } from './receiver.ts'
import { reportFailure } from './reports.ts'
import type { World } from './world.ts'

export interface TrafficParts {
  readonly office: Office
  readonly world: World
  readonly partners: Partners
  readonly chance: Chance
  /** Tells the person at the terminal. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
  /** Above so many letters that wait, nothing happens any more until there are a tenth fewer. Default 5,000. */
  readonly mostPending?: number
}

/** Between two things that happen. */
const BEAT_US = microseconds(2)

const MOST_PENDING = 5_000
/** In beats. */
const LOOK_EVERY = 5
const OLD_EVERY = 200

/** A storm: so many payments, so many at a time, from this second of each round on. */
const STORM = { payments: 300, atOnce: 6, fromSecond: 20 } as const
const ROUND_SECONDS = 1_200

/** When partners are out of order, in seconds of each round. */
const OUTAGES = [
  { what: 'erpIsDown', from: 70, to: 160 },
  { what: 'warehouseIsDown', from: 30, to: 150 },
  { what: 'printerIsOut', from: 100, to: 220 },
] as const

export class Traffic {
  readonly #parts: TrafficParts
  #isFull = false

  constructor(parts: TrafficParts) {
    this.#parts = parts
  }

  /** Goes on until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    await Promise.all([this.#everyday(), this.#rounds(), this.#storms()])
  }

  async #everyday(): Promise<void> {
    const { office, signal } = this.#parts
    for (let beat = 0; !signal.aborted; beat++) {
      await this.#attempt(async () => {
        if (beat % LOOK_EVERY === 0) await this.#look()
        if (this.#isFull) return
        // Now and then, and soon, something that is no JSON at all.
        if (beat % OLD_EVERY === 1) await this.#produce(billing.queue, oldInvoice(this.#occasion()))
        else await this.#somethingHappens()
      })
      await pause(office.clock, BEAT_US, signal)
    }
  }

  /** Partners go away and come back. */
  async #rounds(): Promise<void> {
    const { office, world, signal } = this.#parts
    const begin = office.clock.now()
    while (!signal.aborted) {
      const second = (Number(office.clock.now() - begin) / 1e6) % ROUND_SECONDS
      for (const { what, from, to } of OUTAGES) world[what] = second >= from && second < to
      await pause(office.clock, BEAT_US, signal)
    }
  }

  async #storms(): Promise<void> {
    const { office, signal } = this.#parts
    await pause(office.clock, microseconds(STORM.fromSecond), signal)
    while (!signal.aborted) {
      const begin = office.clock.now()
      if (!this.#isFull) await this.#storm()
      await pause(office.clock, microseconds(ROUND_SECONDS) - (office.clock.now() - begin), signal)
    }
  }

  async #storm(): Promise<void> {
    const { office, world, say, signal } = this.#parts
    say('demo: the payment gateway stopped answering; some hundred payments will die of it within a minute')
    world.gatewayIsDown = true
    for (let sent = 0; sent < STORM.payments && !signal.aborted; sent += STORM.atOnce) {
      const batch = Array.from({ length: STORM.atOnce }, () => payments.sick(this.#occasion()))
      await this.#attempt(() => this.#produce(payments.queue, ...batch))
      await pause(office.clock, microseconds(1), signal)
    }
    // The last ones use up their attempts.
    await pause(office.clock, microseconds(10), signal)
    world.gatewayIsDown = false
    if (!signal.aborted) say('demo: the payment gateway answers again; what died of it can be sent back')
  }

  async #somethingHappens(): Promise<void> {
    const { office, chance, partners } = this.#parts
    const occasion = this.#occasion()
    const what = chance.next()
    if (what < 0.45) return this.#engineGets(chance.pickBy(ENGINE_ROLES))
    if (what < 0.6) return this.#produce('orders', order(occasion, this.#warehouse()))
    if (what < 0.68) return this.#produce('labels', label(occasion))
    if (what < 0.72) return this.#produce('sign-ups', signUp(occasion))
    if (what < 0.84) return partners.tellErp(occasion, chance.isOne(0.12) ? REFUSED.erp : 'order.paid')
    if (what < 0.96)
      return partners.tellAll(occasion, chance.isOne(0.12) ? REFUSED.storefront : 'parcel.ready')
    await reportFailure(office, occasion)
  }

  async #engineGets({ queue, sickShare, sick, well }: EngineRole): Promise<void> {
    const occasion = this.#occasion()
    await this.#produce(queue, occasion.chance.isOne(sickShare) ? sick(occasion) : well(occasion))
  }

  #warehouse(): string {
    const { chance } = this.#parts
    if (chance.isOne(0.12)) return SLOW_WAREHOUSE
    return chance.isOne(0.1) ? CLOSED_WAREHOUSE : chance.pick(WAREHOUSES)
  }

  async #produce(queueName: string, ...payloads: readonly Buffer[]): Promise<void> {
    await this.#parts.office.queues.produce({ queueName, items: payloads.map((payload) => ({ payload })) })
  }

  #occasion(): Occasion {
    const { chance, office } = this.#parts
    return { chance, now: office.clock.now() }
  }

  /** Stops and begins again by how many letters wait. */
  async #look(): Promise<void> {
    const { office, say, mostPending = MOST_PENDING } = this.#parts
    const fewEnough = Math.floor(mostPending * 0.9)
    const { Pending } = await office.letters.ledger.standing()
    const isFull = Pending > (this.#isFull ? fewEnough : mostPending)
    if (isFull && !this.#isFull)
      say(`demo: ${Pending} letters wait; nothing more is sent until there are at most ${fewEnough}`)
    if (!isFull && this.#isFull) say('demo: there is room for letters again')
    this.#isFull = isFull
  }

  /** A store that is away for a moment ends no demo. */
  async #attempt(act: () => Promise<void>): Promise<void> {
    const { say, signal } = this.#parts
    try {
      await act()
    } catch (error) {
      if (!signal.aborted)
        say(`demo: something could not be sent: ${error instanceof Error ? error.message : error}`)
    }
  }
}
