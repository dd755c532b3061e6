/**
 * The present of the invented shop: every other second somebody orders, pays or signs up, and some of it fails. It
 * pauses while more letters wait than anybody would read.
 */
import { microseconds } from '../core/clock.ts'
import { pause } from '../core/waiting.ts'
import type { Letters } from '../letters/letters.ts'
import { GATEWAY } from './story/story.ts'
import type { World } from './world.ts'

export interface TrafficParts {
  readonly letters: Letters
  readonly world: World
  /** For the person at the terminal. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
  /** Above so many waiting letters nothing happens until there are a tenth fewer. Default 5,000. */
  readonly mostPending?: number
}

const BEAT_US = microseconds(2)

const MOST_PENDING = 5_000
const LOOK_EVERY = 5
const RARITY_EVERY = 200

/** Payments in a storm, at a time, and its begin in each round. */
const STORM = { payments: 300, atOnce: 6, fromSecond: 20 } as const
const ROUND_SECONDS = 1_200

export class Traffic {
  readonly #parts: TrafficParts
  #isFull = false

  constructor(parts: TrafficParts) {
    this.#parts = parts
  }

  async run(): Promise<void> {
    await Promise.all([this.#everyday(), this.#rounds(), this.#storms()])
  }

  async #everyday(): Promise<void> {
    const { world, signal } = this.#parts
    for (let beat = 0; !signal.aborted; beat++) {
      await this.#attempt(async () => {
        if (beat % LOOK_EVERY === 0) await this.#look()
        if (this.#isFull) return
        if (beat % RARITY_EVERY === 1) for (const part of world.parts) await part.rarity?.()
        else await world.chance.pickBy(world.parts.flatMap(({ happens = [] }) => happens)).act()
      })
      await pause(world.clock, BEAT_US, signal)
    }
  }

  async #rounds(): Promise<void> {
    const { world, signal } = this.#parts
    const outages = world.parts.flatMap((part) => part.outages ?? [])
    const begin = world.now
    while (!signal.aborted) {
      const second = (Number(world.now - begin) / 1e6) % ROUND_SECONDS
      for (const { who, fromSecond, toSecond } of outages)
        world.setOut(who, second >= fromSecond && second < toSecond)
      await pause(world.clock, BEAT_US, signal)
    }
  }

  async #storms(): Promise<void> {
    const { world, signal } = this.#parts
    await pause(world.clock, microseconds(STORM.fromSecond), signal)
    while (!signal.aborted) {
      const begin = world.now
      if (!this.#isFull) await this.#storm()
      await pause(world.clock, microseconds(ROUND_SECONDS) - (world.now - begin), signal)
    }
  }

  async #storm(): Promise<void> {
    const { world, say, signal } = this.#parts
    say('demo: the payment gateway stopped answering; some hundred payments will die of it within a minute')
    world.setOut(GATEWAY, true)
    for (let sent = 0; sent < STORM.payments && !signal.aborted; sent += STORM.atOnce) {
      for (const { storm } of world.parts)
        await this.#attempt(async () => void (await storm?.now(STORM.atOnce)))
      await pause(world.clock, microseconds(1), signal)
    }
    // The last payments use up their attempts.
    await pause(world.clock, microseconds(10), signal)
    world.setOut(GATEWAY, false)
    if (!signal.aborted) say('demo: the payment gateway answers again; what died of it can be sent back')
  }

  async #look(): Promise<void> {
    const { letters, say, mostPending = MOST_PENDING } = this.#parts
    const fewEnough = Math.floor(mostPending * 0.9)
    const { Pending } = await letters.numbers.summary()
    const isFull = Pending > (this.#isFull ? fewEnough : mostPending)
    if (isFull && !this.#isFull)
      say(`demo: ${Pending} letters wait; nothing more is sent until there are at most ${fewEnough}`)
    if (!isFull && this.#isFull) say('demo: there is room for letters again')
    this.#isFull = isFull
  }

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
