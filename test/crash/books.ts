/**
 * What the clients of a crash test know: which produces were acknowledged, what was delivered to them and what
 * they were told is done. At the end the books are held against what the store still has.
 */
import { expect } from 'vitest'

/** A call whose answer was lost may have been applied or not. */
export type Outcome = 'applied' | 'refused' | 'unknown'

/** Where an item can lie at the end. */
export interface Found {
  readonly place: 'queue' | 'dead queue'
  readonly id: string
  readonly payload: string
  readonly sourceId: string | undefined
}

interface Delivery {
  readonly id: string
  readonly attempts: number
}

interface Entry {
  readonly request: number
  readonly deliveries: Delivery[]
  /** Deliveries from the dead queue, which counts attempts anew. */
  readonly letterDeliveries: Delivery[]
  /** The delivery that was completed, or sent to the dead queue, with an acknowledgement. */
  completed: Delivery | undefined
  buried: Delivery | undefined
  letterCompleted: boolean
  /** Somebody asked to complete it and never heard whether that was done. */
  perhapsCompleted: boolean
}

export class Books {
  readonly #entries = new Map<string, Entry>()
  readonly #requests: Outcome[] = []
  readonly #maxAttempts: number

  constructor(maxAttempts: number) {
    this.#maxAttempts = maxAttempts
  }

  /** Opens the accounts of one produce request. */
  producing(payloads: readonly string[]): { done(outcome: Outcome): void } {
    const request = this.#requests.push('unknown') - 1
    for (const payload of payloads) {
      this.#entries.set(payload, {
        request,
        deliveries: [],
        letterDeliveries: [],
        completed: undefined,
        buried: undefined,
        letterCompleted: false,
        perhapsCompleted: false,
      })
    }
    return {
      done: (outcome) => {
        this.#requests[request] = outcome
      },
    }
  }

  delivered(payload: string, delivery: Delivery): void {
    this.#entry(payload).deliveries.push(delivery)
  }

  letterDelivered(payload: string, delivery: Delivery): void {
    this.#entry(payload).letterDeliveries.push(delivery)
  }

  completed(payload: string, delivery: Delivery, outcome: Outcome): void {
    const entry = this.#entry(payload)
    if (outcome === 'applied') entry.completed = delivery
    if (outcome === 'unknown') entry.perhapsCompleted = true
  }

  letterCompleted(payload: string, outcome: Outcome): void {
    const entry = this.#entry(payload)
    if (outcome === 'applied') entry.letterCompleted = true
    if (outcome === 'unknown') entry.perhapsCompleted = true
  }

  buried(payload: string, delivery: Delivery): void {
    this.#entry(payload).buried = delivery
  }

  /** How much happened, so that a test can tell that it tested something. */
  get totals() {
    const entries = [...this.#entries.values()]
    return {
      acknowledged: this.#requests.filter((outcome) => outcome === 'applied').length,
      deliveries: entries.reduce((sum, { deliveries }) => sum + deliveries.length, 0),
      completed: entries.filter(({ completed }) => completed !== undefined).length,
      buried: entries.filter(({ buried }) => buried !== undefined).length,
    }
  }

  /** Everything that contradicts the promises, in words; empty when they were kept. */
  audit(found: readonly Found[]): string[] {
    const problems: string[] = []
    const places = Map.groupBy(found, ({ payload }) => payload)
    for (const payload of places.keys()) {
      if (!this.#entries.has(payload)) problems.push(`'${payload}' is stored and nobody produced it`)
    }
    const seenRequests = new Set<number>()
    for (const [payload, entry] of this.#entries) {
      if (entry.deliveries.length > 0 || places.has(payload)) seenRequests.add(entry.request)
    }
    for (const [payload, entry] of this.#entries) {
      const mine = places.get(payload) ?? []
      const say = (problem: string) => problems.push(`'${payload}' ${problem}: ${describe(entry, mine)}`)
      this.#auditDeliveries(entry, say)
      this.#auditPlaces(entry, mine, seenRequests.has(entry.request), say)
    }
    const letters = found.filter(({ place }) => place === 'dead queue')
    const sources = new Set(letters.map(({ sourceId }) => sourceId))
    if (sources.size !== letters.length) problems.push('two letters have the same source_id')
    return problems
  }

  #auditDeliveries(entry: Entry, say: (problem: string) => void): void {
    const attempts = entry.deliveries.map((delivery) => delivery.attempts)
    const highest = Math.max(0, ...attempts)
    if (new Set(attempts).size !== attempts.length) say('was delivered twice in one lease')
    if (attempts.some((attempt) => attempt < 1)) say('was delivered without an attempt')
    if (highest > this.#maxAttempts) say('was delivered more often than max_attempts')
    if (highest > (entry.completed?.attempts ?? highest)) say('was delivered after it was completed')
    if (highest > (entry.buried?.attempts ?? highest))
      say('was delivered after it was sent to the dead queue')
    const letterAttempts = entry.letterDeliveries.map((delivery) => delivery.attempts)
    if (new Set(letterAttempts).size !== letterAttempts.length)
      say('was delivered twice in one lease as a letter')
  }

  #auditPlaces(entry: Entry, mine: readonly Found[], seen: boolean, say: (problem: string) => void): void {
    const produced = this.#requests[entry.request]
    const over = entry.completed !== undefined || entry.letterCompleted
    if (mine.length > 1) say('is in more than one place')
    if (over && mine.length > 0) say('was completed and is still there')
    if (produced === 'refused' && seen) say('was refused and is there')
    // A request is applied as a whole: one of its items in the store stands for all of them.
    const must = produced === 'applied' || (produced === 'unknown' && seen)
    if (must && mine.length === 0 && !over && !entry.perhapsCompleted) say('is lost')
    for (const { place, id, sourceId } of mine) {
      if (place === 'queue' && entry.buried !== undefined)
        say('was sent to the dead queue and is in its queue')
      if (place !== 'dead queue') continue
      if (sourceId === undefined || sourceId === id) say('is a letter without a source_id of its own')
      if (entry.buried !== undefined && entry.buried.id !== sourceId)
        say('has another source_id than its last lease')
    }
  }

  #entry(payload: string): Entry {
    const entry = this.#entries.get(payload)
    if (entry === undefined) expect.fail(`'${payload}' was delivered and nobody produced it`)
    return entry
  }
}

const describe = (entry: Entry, found: readonly Found[]): string => JSON.stringify({ ...entry, found })
