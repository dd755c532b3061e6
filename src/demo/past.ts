/**
 * The past of a demo: days in which messages died and people dealt with them, filed act by act on a clock that is
 * moved. Every chart has something to show, and every promise holds.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { type Instant, later } from '../core/clock.ts'
import { BartlebyError } from '../core/errors.ts'
import type { LetterStatus } from '../letters/letter.ts'
import { DISCARD_NOTES, OPERATORS, RETRY_NOTES } from './story/shop.ts'
import { type DemoOffice, GATEWAY, type PastGroup } from './story/story.ts'
import type { World } from './world.ts'

const MINUTE_US = 60_000_000n
const HOUR_US = 60n * MINUTE_US

/** Two days take a second to file in memory, one day some seconds on a disk. */
export const PAST_HOURS = { inMemory: 50, onDisk: 26 } as const

export const hoursUs = (hours: number): bigint => BigInt(hours) * HOUR_US

/**
 * Acts share few moments: each time the clock moves, everything that polls looks once. Attempts and deliveries take
 * seconds, so no two letters have the same times.
 */
const SLOT_US = 20n * MINUTE_US

/** Deliveries of the last minutes might not be over when the present begins. */
const QUIET_US = 5n * MINUTE_US

/** In turn: chance might leave one out. */
const FATES = [
  'retry',
  'none',
  'discard',
  'retry',
  'restore',
  'none',
  'retry',
  'expire',
  'none',
  'retry',
  'discard',
  'none',
  'retry',
] as const

/** Ago: within the chart of the last day. */
const STORM_HOURS = 20
const EXPIRY_HOURS = 7

export class Past {
  readonly #office: DemoOffice
  readonly #world: World
  readonly #hours: number
  readonly #begin: Instant
  readonly #timeline = new Timeline()
  #filed = 0

  constructor(office: DemoOffice, world: World, hours: number) {
    this.#office = office
    this.#world = world
    this.#hours = hours
    this.#begin = world.now
  }

  /** From where the clock is up to the present. */
  async file(): Promise<void> {
    const { clock } = this.#world
    for (let hour = 0; hour < this.#hours; hour++) this.#planHour(hour)
    this.#planStorm(this.#hours - STORM_HOURS)
    this.#plan(hoursUs(this.#hours - EXPIRY_HOURS), () => this.#expireOldest())
    this.#planLastHour(this.#hours - 1)
    await this.#timeline.play(later(clock.present, -QUIET_US), async (at) => {
      clock.moveTo(at)
      // The office's own rounds: labels die, counts are folded.
      await turn()
    })
  }

  #plan(afterUs: bigint, act: () => Promise<void>): void {
    this.#timeline.add(later(this.#begin, afterUs), act)
  }

  #planInSlot(minutes: number, act: () => Promise<void>): void {
    const afterUs = this.#world.now - this.#begin + BigInt(minutes) * MINUTE_US
    this.#plan((afterUs / SLOT_US + 1n) * SLOT_US, act)
  }

  #planHour(hour: number): void {
    const { chance, parts } = this.#world
    const within = (): bigint => hoursUs(hour) + BigInt(chance.whole(0, 2)) * SLOT_US
    const deaths = chance.whole(1, hour % 24 < 12 ? 3 : 1)
    for (let count = 0; count < deaths; count++) this.#plan(within(), () => this.#somethingDies())
    for (const part of parts)
      if (part.wentWell) this.#plan(within(), async () => void (await part.wentWell?.()))
    for (const { who, past } of parts.flatMap(({ outages = [] }) => outages))
      if (past?.hour === hour % 10)
        this.#plan(within(), () => this.#file(this.#duringOutage(who, () => past.died(4))))
  }

  /** The last hour is busy, and leaves something of every lesson. */
  #planLastHour(hour: number): void {
    const lessons = this.#world.parts.flatMap((part) => part.lessons ?? [])
    for (let minute = 2, turns = 0; minute < 54; minute += 5) {
      const lesson = minute % 2 === 0 ? undefined : lessons[turns++ % lessons.length]
      const act = lesson === undefined ? () => this.#somethingDies() : async () => void (await lesson())
      this.#plan(hoursUs(hour) + BigInt(minute) * MINUTE_US, act)
    }
  }

  /** More than a hundred unanswered payments over half an hour; most were sent back. */
  #planStorm(hour: number): void {
    for (const { storm } of this.#world.parts)
      for (let minute = 0; storm !== undefined && minute < 30; minute += 4)
        this.#plan(hoursUs(hour) + BigInt(minute) * MINUTE_US, () =>
          this.#file(this.#duringOutage(GATEWAY, () => storm.past(15))),
        )
  }

  async #duringOutage(who: string, died: () => Promise<PastGroup>): Promise<PastGroup> {
    this.#world.setOut(who, true)
    const group = await died()
    this.#world.setOut(who, false)
    return group
  }

  async #somethingDies(): Promise<void> {
    const { chance, parts } = this.#world
    await this.#file(chance.pickBy(parts.flatMap(({ died = [] }) => died)).act())
  }

  async #file(died: Promise<PastGroup | null>): Promise<void> {
    const { chance } = this.#world
    const { letters } = this.#office
    const group = await died
    if (group === null) return
    const fate = FATES[this.#filed++ % FATES.length]
    const actor = chance.pick(OPERATORS)
    const notes = chance.pick(DISCARD_NOTES)
    const minutes = chance.whole(6, 480)
    const change = (status: LetterStatus, why: string | null) => async (): Promise<void> => {
      for (const letter of group.letters) await letters.change(letter, { status, notes: why, actor })
    }
    const plan = (when: number, act: () => Promise<void>): void =>
      this.#planInSlot(when, () => unlessChanged(act))
    if (fate === 'retry') plan(minutes, () => this.#sendBack(group, actor))
    if (fate === 'expire') plan(minutes, change('Expired', null))
    if (fate === 'discard' || fate === 'restore') plan(minutes, change('Resolved', notes))
    if (fate === 'restore') plan(minutes + 25, change('Pending', null))
  }

  async #sendBack({ letters, workOn }: PastGroup, actor: string): Promise<void> {
    if (workOn === null) return
    const notes = this.#world.chance.pick(RETRY_NOTES)
    for (const letter of letters) await this.#office.letters.retry(letter, { edit: null, notes, actor })
    await workOn()
  }

  async #expireOldest(): Promise<void> {
    await this.#office.letters.expireOlder({ olderThanDays: 1, engine: 'alerts', actor: OPERATORS[0] })
  }
}

/** Letters that somebody dealt with before stay as they are. */
async function unlessChanged(act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (!(error instanceof BartlebyError)) throw error
  }
}

/** Acts in the order of their instants; they may add later ones. */
class Timeline {
  readonly #entries: { readonly at: Instant; readonly act: () => Promise<void> }[] = []

  add(at: Instant, act: () => Promise<void>): void {
    const place = this.#entries.findLastIndex((entry) => entry.at <= at)
    this.#entries.splice(place + 1, 0, { at, act })
  }

  /** Up to `end`; `reach` gets each instant first. */
  async play(end: Instant, reach: (at: Instant) => Promise<void>): Promise<void> {
    for (let entry = this.#entries.shift(); entry !== undefined; entry = this.#entries.shift()) {
      if (entry.at >= end) return
      await reach(entry.at)
      await entry.act()
    }
  }
}
