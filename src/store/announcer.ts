/**
 * Notifications between servers on one store: something became ready. A hint only; every server also looks now and then, and behind a
 * pooler hears nothing.
 *
 * A notification is a commit that all others wait for, and wakes every server. So one goes out per subject and interval, the first at
 * once, and none while no other server is there. Servers greet when they start, when a newcomer does, and every few seconds. A server
 * that cannot hear itself announces everything.
 */
import type { Log } from '../core/log.ts'
import { Rounds, type Service } from '../core/rounds.ts'
import { systemClock } from '../core/system-clock.ts'
import type { Database } from './database.ts'

/** Items of a queue's partition from a serial on, or jobs of a webhook consumer. */
export interface Word {
  /** A queue, or `WEBHOOK_JOBS`. */
  readonly about: string
  readonly number: number
  /** The lowest since the last notification. */
  readonly from: number
}

/** No queue has this name. */
export const WEBHOOK_JOBS = ''

const CHANNEL = 'bartleby_arrivals'
/** Between two notifications about a queue. */
const INTERVAL_MS = 10
/** A notification holds 8,000 bytes. */
const MOST_NAMED = 250
const HELLO_EVERY_MS = 5_000
const HELLO_EVERY_US = BigInt(HELLO_EVERY_MS) * 1_000n
const UNTOLD = 'other servers were not told; they will look'
/** A server not heard for so long is gone. */
const GONE_AFTER_MS = 3 * HELLO_EVERY_MS
/** A server that has not heard itself for so long is deaf: shorter, so that it knows before others seem gone. */
const DEAF_AFTER_MS = GONE_AFTER_MS - HELLO_EVERY_MS
/** Other servers answer within this time. */
const ANSWERED_WITHIN_MS = 1_000

interface Outgoing {
  readonly unsaid: Map<number, number>
  timer: NodeJS.Timeout | undefined
}

type Store = Pick<Database, 'dialect' | 'notify' | 'listen'>

export class Announcer implements Service {
  readonly name = 'servers.hello'
  /** On the system's clock, whatever time tests set. */
  readonly #hellos: Rounds
  readonly #db: Store
  readonly #log: Log
  readonly #nowMs: () => number
  readonly #listeners: ((word: Word) => void)[] = []
  readonly #outgoing = new Map<string, Outgoing>()
  readonly #self = crypto.randomUUID()
  readonly #heardMs = new Map<string, number>()
  #startedMs = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(db: Store, log: Log, nowMs = () => performance.now()) {
    this.#db = db
    this.#log = log
    this.#nowMs = nowMs
    this.#hellos = new Rounds({
      ...{ name: this.name, clock: systemClock(), log, everyUs: HELLO_EVERY_US },
      ...{ act: () => db.notify(CHANNEL, this.#self), trouble: UNTOLD, level: 'debug' },
    })
  }

  get rounds(): readonly Rounds[] {
    return [this.#hellos]
  }

  onWord(listener: (word: Word) => void): void {
    this.#listeners.push(listener)
  }

  async start(): Promise<void> {
    if (this.#db.dialect === 'sqlite') return
    await this.#db.listen(CHANNEL, (payload) => this.#hear(payload))
    if (this.#stopped) return
    this.#startedMs = this.#nowMs()
    this.#hellos.start()
  }

  /** Tells other servers, if any; about one subject at most every `everyMs`. */
  announce({ about, number, from }: Word, everyMs = INTERVAL_MS): void {
    if (this.#stopped || this.#db.dialect === 'sqlite' || this.#isAlone()) return
    let outgoing = this.#outgoing.get(about)
    if (outgoing === undefined) {
      outgoing = { unsaid: new Map(), timer: undefined }
      this.#outgoing.set(about, outgoing)
    }
    const known = outgoing.unsaid.get(number) ?? from
    outgoing.unsaid.set(number, Math.min(known, from))
    if (outgoing.timer === undefined) this.#send(about, outgoing, everyMs)
  }

  /** Not awaited: a silent store must not hold up the end. */
  async stop(): Promise<void> {
    void this.#hellos.stop()
    for (const [about, outgoing] of this.#outgoing) {
      clearTimeout(outgoing.timer)
      while (outgoing.unsaid.size > 0) this.#sayOf(about, outgoing)
    }
    this.#stopped = true
  }

  #hear(payload: string): void {
    const [server = '', about, ...entries] = payload.split('~')
    const isNew = !this.#isThere(server)
    this.#heardMs.set(server, this.#nowMs())
    if (server === this.#self) return
    if (isNew) this.#say(this.#self)
    if (about === undefined) return
    for (const entry of entries) {
      const [number, from] = entry.split(':').map(Number)
      if (number === undefined || from === undefined) continue
      for (const listener of this.#listeners) listener({ about, number, from })
    }
  }

  /** Certain that nobody else listens. */
  #isAlone(): boolean {
    if (this.#nowMs() - this.#startedMs < ANSWERED_WITHIN_MS) return false
    if (!this.#isThere(this.#self, DEAF_AFTER_MS)) return false
    for (const server of this.#heardMs.keys())
      if (server !== this.#self && this.#isThere(server)) return false
    return true
  }

  #isThere(server: string, withinMs = GONE_AFTER_MS): boolean {
    const heardMs = this.#heardMs.get(server)
    if (heardMs === undefined) return false
    if (this.#nowMs() - heardMs < withinMs) return true
    this.#heardMs.delete(server)
    return false
  }

  #send(about: string, outgoing: Outgoing, everyMs: number): void {
    this.#sayOf(about, outgoing)
    outgoing.timer = setTimeout(() => {
      outgoing.timer = undefined
      if (outgoing.unsaid.size > 0) this.#send(about, outgoing, everyMs)
      else this.#outgoing.delete(about)
    }, everyMs)
    outgoing.timer.unref()
  }

  #sayOf(about: string, { unsaid }: Outgoing): void {
    const named = [...unsaid].slice(0, MOST_NAMED)
    for (const [number] of named) unsaid.delete(number)
    // No queue's name has a '~'.
    this.#say([this.#self, about, ...named.map(([number, from]) => `${number}:${from}`)].join('~'))
  }

  #say(words: string): void {
    if (this.#stopped) return
    this.#db.notify(CHANNEL, words).catch((error: unknown) => this.#log.debug({ err: error }, UNTOLD))
  }
}
