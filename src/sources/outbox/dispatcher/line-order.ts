/**
 * The order of deliveries: messages of one line wait for each other, all others go as they were claimed. A message that is not delivered
 * holds back those behind it in its line.
 */
import type { Held } from '../../../core/work/held.ts'
import type { Settlement, WorkOrder } from '../../../core/work/work-table.ts'
import { type Delivery, GIVEN_BACK, type Outcome, PARKED } from './outcome.ts'

/** A line in which a message is being delivered, or is the next to be. */
interface Standing {
  first: Held<Delivery>
  readonly behind: Held<Delivery>[]
}

export class LineOrder implements WorkOrder<Delivery, Outcome> {
  readonly #onDead: 'hold' | 'skip'
  #ready: Held<Delivery>[] = []
  #head = 0
  /** Their lines have moved on: they go before all others. */
  readonly #resumed: Held<Delivery>[] = []
  readonly #lines = new Map<string, Standing>()

  constructor(onDead: 'hold' | 'skip') {
    this.#onDead = onDead
  }

  add(held: Held<Delivery>): void {
    this.#ready.push(held)
  }

  next(): Held<Delivery> | undefined {
    const resumed = this.#resumed.shift()
    if (resumed !== undefined) return resumed
    while (this.#head < this.#ready.length) {
      const held = this.#ready[this.#head++]
      if (held === undefined) continue
      const { line } = held.job
      if (line === null) return held
      const standing = this.#lines.get(line)
      if (standing === undefined) {
        this.#lines.set(line, { first: held, behind: [] })
        return held
      }
      standing.behind.push(held)
    }
    this.#takeReady()
    return undefined
  }

  /** Its line has no other in delivery: those that were claimed behind it would overtake it. */
  claimedAgain(held: Held<Delivery>): void {
    const { line } = held.job
    if (line !== null && !this.#lines.has(line)) this.#lines.set(line, { first: held, behind: [] })
  }

  /** Its line goes on with the next; or must not go on, and what stands behind it goes back. */
  ended(held: Held<Delivery>, outcome: Outcome | null): readonly Settlement<Delivery, Outcome>[] {
    const { line } = held.job
    const standing = line === null ? undefined : this.#lines.get(line)
    // Not begun from here. By id: a message that was claimed again ends as another holding of it.
    if (line === null || standing === undefined || standing.first.id !== held.id) return []
    if (outcome?.kind === 'processed' || (outcome?.kind === 'dead' && this.#onDead === 'skip')) {
      this.#resume(line, standing)
      return []
    }
    this.#lines.delete(line)
    const waiting = this.#takeReady()
    this.#ready = waiting.filter(({ job }) => job.line !== line)
    const result = outcome === null || outcome.kind === 'released' ? GIVEN_BACK : PARKED
    const behind = [...standing.behind, ...waiting.filter(({ job }) => job.line === line)]
    return behind.map((each) => ({ held: each, result }))
  }

  takeAll(): readonly Held<Delivery>[] {
    const behind = [...this.#lines.values()].flatMap((standing) => standing.behind.splice(0))
    const resumed = this.#resumed.splice(0)
    for (const { job } of resumed) if (job.line !== null) this.#lines.delete(job.line)
    return [...resumed, ...behind, ...this.#takeReady()]
  }

  #resume(line: string, standing: Standing): void {
    const next = standing.behind.shift()
    if (next === undefined) this.#lines.delete(line)
    else {
      standing.first = next
      this.#resumed.push(next)
    }
  }

  #takeReady(): Held<Delivery>[] {
    const waiting = this.#ready.slice(this.#head)
    this.#ready = []
    this.#head = 0
    return waiting
  }
}
