/**
 * Calls that gather while those before them are under way are done together: many callers share one transaction, and a
 * single one never waits for a timer.
 *
 * A batch begins when everything that has arrived in this turn of the event loop was read. On SQLite nothing of a batch leaves the
 * loop: begun any sooner, every call would be a batch of its own, with its own wait for the disk.
 */
import { setImmediate as endOfTurn } from 'node:timers/promises'

export interface BatcherOptions<In = never> {
  /** How many batches may be under way at the same time. Default 1. */
  readonly atOnce?: number
  /** How many calls make a batch at most. Default 1,000. */
  readonly most?: number
  /** How much a batch may weigh; one call alone may weigh more. */
  readonly mostWeight?: number
  /** What a call is about. No two batches are about the same at once: they would wait for each other, or for ever. Default: nothing. */
  readonly subjectsOf?: (one: In) => readonly string[]
  /** How often a batch may be about the same; one call alone may be more often. */
  readonly mostOfSubject?: number
  /** Whether an error would meet every call alone too, as when the store is away. Default: none would. */
  readonly meetsAll?: (error: unknown) => boolean
}

interface Call<In, Out> {
  readonly one: In
  readonly weight: number
  readonly subjects: readonly string[]
  readonly resolve: (out: Out) => void
  readonly reject: (error: unknown) => void
}

export class Batcher<In, Out> {
  readonly #perform: (batch: readonly In[]) => Promise<readonly Out[]>
  readonly #options: Required<BatcherOptions<In>>
  #calls: Call<In, Out>[] = []
  /** What the batches that are under way are about. */
  readonly #subjects = new Set<string>()
  readonly #underWay = new Set<Promise<unknown>>()
  #isAboutToBegin = false

  /** `perform` does a batch and gives the result of each of its calls, in their order. */
  constructor(perform: (batch: readonly In[]) => Promise<readonly Out[]>, options: BatcherOptions<In> = {}) {
    this.#perform = perform
    this.#options = {
      atOnce: 1,
      most: 1_000,
      mostWeight: Number.POSITIVE_INFINITY,
      subjectsOf: () => [],
      mostOfSubject: Number.POSITIVE_INFINITY,
      meetsAll: () => false,
      ...options,
    }
  }

  /** Does one, together with others that come at the same time. */
  do(one: In, weight = 1): Promise<Out> {
    const subjects = this.#options.subjectsOf(one)
    return new Promise((resolve, reject) => {
      this.#calls.push({ one, weight, subjects, resolve, reject })
      this.#beginSoon()
    })
  }

  /** Resolves once nothing is waiting or under way. */
  async idle(): Promise<void> {
    while (this.#calls.length > 0 || this.#underWay.size > 0)
      await Promise.all([...this.#underWay, endOfTurn()])
  }

  #beginSoon(): void {
    if (this.#isAboutToBegin || this.#calls.length === 0 || this.#underWay.size >= this.#options.atOnce)
      return
    this.#isAboutToBegin = true
    setImmediate(() => {
      this.#isAboutToBegin = false
      this.#begin()
    })
  }

  #begin(): void {
    while (this.#calls.length > 0 && this.#underWay.size < this.#options.atOnce) {
      const batch = this.#take()
      // The next is about what is under way, and begins at the end of that.
      if (batch.length === 0) return
      const subjects = batch.flatMap((call) => call.subjects)
      for (const subject of subjects) this.#subjects.add(subject)
      const run: Promise<unknown> = this.#run(batch).finally(() => {
        this.#underWay.delete(run)
        for (const subject of subjects) this.#subjects.delete(subject)
        this.#beginSoon()
      })
      this.#underWay.add(run)
    }
  }

  #take(): readonly Call<In, Out>[] {
    const { most, mostWeight, mostOfSubject } = this.#options
    const times = new Map<string, number>()
    let count = 0
    let weight = 0
    for (const { subjects, ...call } of this.#calls) {
      weight += call.weight
      let mostTimes = 0
      for (const subject of subjects) {
        const time = (times.get(subject) ?? 0) + 1
        times.set(subject, time)
        mostTimes = Math.max(mostTimes, time)
      }
      const isFull = count === most || weight > mostWeight || mostTimes > mostOfSubject
      if ((isFull && count > 0) || subjects.some((subject) => this.#subjects.has(subject))) break
      count += 1
    }
    const batch = this.#calls.slice(0, count)
    this.#calls = this.#calls.slice(count)
    return batch
  }

  /** Gives the error that would meet every other call too, if there was one. */
  async #run(batch: readonly Call<In, Out>[]): Promise<{ readonly met: unknown } | null> {
    try {
      const outs = await this.#perform(batch.map(({ one }) => one))
      if (outs.length !== batch.length) throw new Error(`${batch.length} calls got ${outs.length} results`)
      // As many as there are calls.
      for (const [i, call] of batch.entries()) call.resolve(outs[i] as Out)
      return null
    } catch (error) {
      const meetsAll = this.#options.meetsAll(error)
      if (batch.length === 1 || meetsAll) {
        for (const call of batch) call.reject(error)
        return meetsAll ? { met: error } : null
      }
    }
    // One of them may be to blame: the others must not fail with it.
    let away: { readonly met: unknown } | null = null
    for (const call of batch) {
      if (away === null) away = await this.#run([call])
      else call.reject(away.met)
    }
    return away
  }
}
