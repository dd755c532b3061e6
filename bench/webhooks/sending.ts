/** Ways to send messages: as fast as they are taken, at a steady rate, or for as long as something else lasts. */
import { setTimeout } from 'node:timers/promises'
import { type Times, timesOf } from '../figures.ts'
import type { Broker } from './broker.ts'

/** Who sends at the same time when as much as possible is sent. */
export const SENDERS = 32

/** Numbers the messages of one measurement. */
export class Sending {
  readonly #broker: Broker
  #next = 0

  constructor(broker: Broker) {
    this.#broker = broker
  }

  /** How many were sent, which is the number of the next one. */
  get sent(): number {
    return this.#next
  }

  /** Sends `count` messages, each sender one after the other; ends with the last answer. */
  async all(channel: string, count: number, senders = SENDERS): Promise<void> {
    const end = this.#next + count
    const sender = async () => {
      while (this.#next < end) await this.#broker.broadcast(channel, this.#next++)
    }
    await Promise.all(Array.from({ length: Math.min(senders, count) }, sender))
  }

  /** Sends so many a second whether those before are answered or not; gives how long the answers took. */
  async steadily(channel: string, perSecond: number, seconds: number): Promise<Times> {
    const count = Math.round(perSecond * seconds)
    const tookMs: number[] = []
    const underWay: Promise<void>[] = []
    const one = async () => {
      const startMs = performance.now()
      await this.#broker.broadcast(channel, this.#next++)
      tookMs.push(performance.now() - startMs)
    }
    const startMs = performance.now()
    for (let begun = 0; begun < count; begun++) {
      const dueMs = startMs + (begun * 1000) / perSecond
      const pauseMs = dueMs - performance.now()
      if (pauseMs > 0) await setTimeout(pauseMs)
      underWay.push(one())
    }
    await Promise.all(underWay)
    return timesOf(tookMs)
  }

  /** A few senders send without a pause until `act` is done. */
  async during(channel: string, senders: number, act: () => Promise<void>): Promise<void> {
    let acting = true
    const sender = async () => {
      while (acting) await this.#broker.broadcast(channel, this.#next++)
    }
    const sending = Promise.all(Array.from({ length: senders }, sender))
    // Who fails while the other goes on is told when the other ends.
    sending.catch(() => {})
    try {
      await act()
    } finally {
      acting = false
      await sending
    }
  }
}
