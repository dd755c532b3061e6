/** Renews claims that are due together, and soon again after a failure. The run of a lost claim is ended. */
import { type Alarm, type Instant, later } from '../clock.ts'
import type { Held } from './held.ts'
import type { WorkerOptions } from './work-table.ts'

/** Between renewals after failures, and when a claim is about to end. */
const SHORTEST_PAUSE_US = 200_000n
const MOST_RENEWED = 1_000

export class Renewals<Job, Result> {
  readonly #options: WorkerOptions<Job, Result>
  readonly #all: () => Iterable<Held<Job>>
  readonly #underWay = new Set<Held<Job>>()
  #alarm: { readonly at: Instant; readonly alarm: Alarm } | undefined
  #isStopped = false

  constructor(options: WorkerOptions<Job, Result>, all: () => Iterable<Held<Job>>) {
    this.#options = options
    this.#all = all
  }

  watch(at: Instant): void {
    const { clock, table } = this.#options
    if (this.#isStopped || table.renew === undefined) return
    if (this.#alarm !== undefined && this.#alarm.at <= at) return
    this.#alarm?.alarm.cancel()
    const alarm = clock.alarm(at, () => {
      this.#alarm = undefined
      this.#look()
    })
    this.#alarm = { at, alarm }
  }

  stop(): void {
    this.#isStopped = true
    this.#alarm?.alarm.cancel()
  }

  /** Rejects when the claim is lost or the table cannot say. */
  async renewNow(held: Held<Job>): Promise<void> {
    held.signal.throwIfAborted()
    const failure = await this.#renew([held])
    held.signal.throwIfAborted()
    if (failure !== null) throw failure.error
  }

  #look(): void {
    const { clock, table } = this.#options
    const now = clock.now()
    const due: Held<Job>[] = []
    for (const held of this.#all()) {
      if (held.isLost) continue
      const dropAt = this.#dropAt(held)
      // Before somebody else begins the job.
      if (dropAt !== null && held.isInDoubt && dropAt <= now) this.#lose(held, null)
      // Together with those due within a tenth of a claim.
      else if (!this.#underWay.has(held) && held.renewAt - (held.until - held.renewAt) / 7n <= now)
        due.push(held)
    }
    for (const group of Map.groupBy(due, ({ job }) => table.groupOf?.(job) ?? 0).values())
      void this.#renewGroup(group)
    this.#watchFirst(now)
  }

  /** When an unrenewed claim is given up; null: never, or only the result is to be written. */
  #dropAt({ until, isOver }: Held<Job>): Instant | null {
    const { dropUs } = this.#options
    return dropUs === undefined || isOver ? null : later(until, -dropUs)
  }

  #watchFirst(now: Instant): void {
    const soonest = later(now, SHORTEST_PAUSE_US)
    let first: Instant | undefined
    const watch = (at: Instant) => {
      if (first === undefined || at < first) first = at
    }
    for (const held of this.#all()) {
      if (held.isLost) continue
      const dropAt = this.#dropAt(held)
      if (dropAt !== null && held.isInDoubt) watch(dropAt)
      if (!this.#underWay.has(held)) watch(held.renewAt > soonest ? held.renewAt : soonest)
    }
    if (first !== undefined) this.watch(first)
  }

  /** One call at a time: others need connections too. */
  async #renewGroup(group: readonly Held<Job>[]): Promise<void> {
    for (const held of group) {
      held.isInDoubt = true
      this.#underWay.add(held)
    }
    for (let from = 0; from < group.length; from += MOST_RENEWED)
      await this.#renewSome(group.slice(from, from + MOST_RENEWED))
  }

  async #renewSome(some: readonly Held<Job>[]): Promise<void> {
    const { clock, onTrouble } = this.#options
    const failure = await this.#renew(some)
    const now = clock.now()
    for (const held of some) {
      this.#underWay.delete(held)
      if (held.isInDoubt) held.renewAt = later(now, (held.until - now) / 3n)
    }
    const left = some.filter((held) => !held.isOver && !held.isLost)
    if (failure !== null && left.length > 0) onTrouble('renew', failure.error, left)
    this.#watchFirst(now)
  }

  /** Returns the error after which nothing is known. */
  async #renew(some: readonly Held<Job>[]): Promise<{ readonly error: unknown } | null> {
    const { clock, table } = this.#options
    const calledAt = clock.now()
    try {
      const ends = await table.renew?.(some)
      for (const held of some) {
        const until = ends?.get(held)
        if (until === undefined) this.#lose(held, null)
        else if (until > held.until) held.claimed(calledAt, until)
      }
      return null
    } catch (error) {
      const blamed = table.blame(error, some, 'renew')
      if (blamed === 'away') return { error }
      if (blamed !== 'refused') {
        this.#lose(blamed, error)
        const others = some.filter((held) => held !== blamed && !held.isOver)
        return others.length === 0 ? null : this.#renew(others)
      }
      // One that is gone refuses all: find out which.
      if (some.length === 1) for (const held of some) this.#lose(held, error)
      else for (const held of some) if (!held.isOver) await this.#renew([held])
      return null
    }
  }

  #lose(held: Held<Job>, error: unknown): void {
    const { reasonOf, onTrouble } = this.#options
    if (held.isOver || held.isLost) return
    held.isLost = true
    held.end(reasonOf('lost', held.job))
    onTrouble('lost', error, [held])
  }
}
