/**
 * Calls that gather while earlier ones are under way share one transaction; a single call never waits for a timer.
 *
 * A batch begins at the end of the event loop's turn. On SQLite a batch never leaves the loop: begun sooner, every call would be a batch
 * with a disk sync of its own.
 */
import { setImmediate as endOfTurn } from 'node:timers/promises'

export interface BatcherOptions<In = never> {
  /** Batches under way at once. Default 1. */
  readonly atOnce?: number
  /** Calls per batch. Default 1,000. */
  readonly most?: number
  /** Weight per batch; a single call may exceed it. */
  readonly mostWeight?: number
  /** Subjects of a call. No two batches share one: they would wait for each other, perhaps for ever. */
  readonly subjectsOf?: (one: In) => readonly string[]
  /** Calls per subject and batch; a single call may exceed it. */
  readonly mostOfSubject?: number
  /** Errors that would meet every call alone too, such as an absent store. */
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
  readonly #subjects = new Set<string>()
  readonly #underWay = new Set<Promise<unknown>>()
  #isAboutToBegin = false

  /** `perform` returns a result for each call, in order. */
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

  do(one: In, weight = 1): Promise<Out> {
    const subjects = this.#options.subjectsOf(one)
    return new Promise((resolve, reject) => {
      this.#calls.push({ one, weight, subjects, resolve, reject })
      this.#beginSoon()
    })
  }

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
      // Its subject is under way; it begins after that.
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

  /** Returns the error that would meet every other call too. */
  async #run(batch: readonly Call<In, Out>[]): Promise<{ readonly met: unknown } | null> {
    try {
      const outs = await this.#perform(batch.map(({ one }) => one))
      if (outs.length !== batch.length) throw new Error(`${batch.length} calls got ${outs.length} results`)
      // Lengths are equal.
      for (const [i, call] of batch.entries()) call.resolve(outs[i] as Out)
      return null
    } catch (error) {
      const meetsAll = this.#options.meetsAll(error)
      if (batch.length === 1 || meetsAll) {
        for (const call of batch) call.reject(error)
        return meetsAll ? { met: error } : null
      }
    }
    // One may be to blame: the others must not fail with it.
    let away: { readonly met: unknown } | null = null
    for (const call of batch) {
      if (away === null) away = await this.#run([call])
      else call.reject(away.met)
    }
    return away
  }
}
