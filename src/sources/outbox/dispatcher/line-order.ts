/**
 * The order of deliveries: messages of a line wait for each other, all others go as claimed. A message that is not
 * delivered holds back those behind it in its line.
 */
import type { Held } from '../../../core/work/held.ts'
import type { Settlement, WorkOrder } from '../../../core/work/work-table.ts'
import { type Delivery, GIVEN_BACK, type Outcome, PARKED } from './outcome.ts'

/** A line with a message in delivery, or next to be. */
interface OpenLine {
  first: Held<Delivery>
  readonly behind: Held<Delivery>[]
}

export class LineOrder implements WorkOrder<Delivery, Outcome> {
  readonly #onDead: 'hold' | 'skip'
  #ready: Held<Delivery>[] = []
  #head = 0
  /** Next of lines that moved on: they go first. */
  readonly #resumed: Held<Delivery>[] = []
  readonly #lines = new Map<string, OpenLine>()

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
      const open = this.#lines.get(line)
      if (open === undefined) {
        this.#lines.set(line, { first: held, behind: [] })
        return held
      }
      open.behind.push(held)
    }
    this.#takeReady()
    return undefined
  }

  /** Keeps its line closed: those claimed behind it would overtake it. */
  claimedAgain(held: Held<Delivery>): void {
    const { line } = held.job
    if (line !== null && !this.#lines.has(line)) this.#lines.set(line, { first: held, behind: [] })
  }

  /** The line goes on with the next, or must not, and those behind go back. */
  ended(held: Held<Delivery>, outcome: Outcome | null): readonly Settlement<Delivery, Outcome>[] {
    const { line } = held.job
    const open = line === null ? undefined : this.#lines.get(line)
    // Not begun from here. By id: a message that was claimed again ends as another holding of it.
    if (line === null || open === undefined || open.first.id !== held.id) return []
    if (outcome?.kind === 'processed' || (outcome?.kind === 'dead' && this.#onDead === 'skip')) {
      this.#resume(line, open)
      return []
    }
    this.#lines.delete(line)
    const waiting = this.#takeReady()
    this.#ready = waiting.filter(({ job }) => job.line !== line)
    const result = outcome === null || outcome.kind === 'released' ? GIVEN_BACK : PARKED
    const behind = [...open.behind, ...waiting.filter(({ job }) => job.line === line)]
    return behind.map((each) => ({ held: each, result }))
  }

  takeAll(): readonly Held<Delivery>[] {
    const behind = [...this.#lines.values()].flatMap((open) => open.behind.splice(0))
    const resumed = this.#resumed.splice(0)
    for (const { job } of resumed) if (job.line !== null) this.#lines.delete(job.line)
    return [...resumed, ...behind, ...this.#takeReady()]
  }

  #resume(line: string, open: OpenLine): void {
    const next = open.behind.shift()
    if (next === undefined) this.#lines.delete(line)
    else {
      open.first = next
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
