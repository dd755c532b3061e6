/**
 * Word between servers on one store: items became leasable, look. A hint: all of them poll anyway, every second.
 *
 * A notification takes a commit of its own and wakes every server. So at most one per queue and interval goes out, the first at once; and
 * none while no other server is there. Servers say that they are: when they start, to newcomers, and every few seconds. Who cannot hear
 * itself cannot hear others either, and announces everything.
 */
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import type { Arrival } from './cycle.ts'

const CHANNEL = 'bartleby_arrivals'
/** The shortest time between two announcements of a queue. */
const INTERVAL_MS = 10
const HELLO_EVERY_MS = 5_000
/** A server that was not heard for this long is gone. */
const GONE_AFTER_MS = 3 * HELLO_EVERY_MS
/** Others have answered by then, if there are any. */
const ANSWERED_WITHIN_MS = 1_000

interface Outgoing {
  /** Lowest serial per part since the last notification. */
  readonly firstSerials: Map<number, number>
  timer: NodeJS.Timeout | undefined
}

type Store = Pick<Database, 'dialect' | 'notify' | 'listen'>

export class Announcer {
  readonly #db: Store
  readonly #log: Log
  readonly #nowMs: () => number
  readonly #outgoing = new Map<string, Outgoing>()
  readonly #self = crypto.randomUUID()
  /** When each server was last heard, this one too. */
  readonly #heardMs = new Map<string, number>()
  #startedMs = Number.POSITIVE_INFINITY
  #hellos: NodeJS.Timeout | undefined
  #stopped = false

  constructor(db: Store, log: Log, nowMs = () => performance.now()) {
    this.#db = db
    this.#log = log
    this.#nowMs = nowMs
  }

  /** Calls `hear` for arrivals that other servers announce. */
  async start(hear: (arrival: Arrival) => void): Promise<void> {
    if (this.#db.dialect === 'sqlite') return
    await this.#db.listen(CHANNEL, (payload) => {
      const [from = '', queueName, ...parts] = payload.split('~')
      const isNew = !this.#isThere(from)
      this.#heardMs.set(from, this.#nowMs())
      if (from === this.#self) return
      if (isNew) this.#say(this.#self)
      if (queueName === undefined) return
      for (const entry of parts) {
        const [part, firstSerial] = entry.split(':').map(Number)
        if (part !== undefined && firstSerial !== undefined) hear({ queueName, part, firstSerial })
      }
    })
    this.#startedMs = this.#nowMs()
    this.#say(this.#self)
    this.#hellos = setInterval(() => this.#say(this.#self), HELLO_EVERY_MS)
    this.#hellos.unref()
  }

  announce({ queueName, part, firstSerial }: Arrival): void {
    if (this.#stopped || this.#db.dialect === 'sqlite' || this.#isAlone()) return
    let outgoing = this.#outgoing.get(queueName)
    if (outgoing === undefined) {
      outgoing = { firstSerials: new Map(), timer: undefined }
      this.#outgoing.set(queueName, outgoing)
    }
    const known = outgoing.firstSerials.get(part) ?? firstSerial
    outgoing.firstSerials.set(part, Math.min(known, firstSerial))
    if (outgoing.timer === undefined) this.#send(queueName, outgoing)
  }

  stop(): void {
    this.#stopped = true
    clearInterval(this.#hellos)
    for (const { timer } of this.#outgoing.values()) clearTimeout(timer)
  }

  /** Whether it is certain that nobody else listens. */
  #isAlone(): boolean {
    if (this.#nowMs() - this.#startedMs < ANSWERED_WITHIN_MS || !this.#isThere(this.#self)) return false
    for (const server of this.#heardMs.keys())
      if (server !== this.#self && this.#isThere(server)) return false
    return true
  }

  #isThere(server: string): boolean {
    const heardMs = this.#heardMs.get(server)
    if (heardMs === undefined) return false
    if (this.#nowMs() - heardMs < GONE_AFTER_MS) return true
    this.#heardMs.delete(server)
    return false
  }

  #send(queueName: string, outgoing: Outgoing): void {
    // '~' cannot be part of a queue name.
    const parts = [...outgoing.firstSerials].map(([part, serial]) => `${part}:${serial}`)
    outgoing.firstSerials.clear()
    outgoing.timer = setTimeout(() => {
      outgoing.timer = undefined
      if (outgoing.firstSerials.size > 0) this.#send(queueName, outgoing)
      else this.#outgoing.delete(queueName)
    }, INTERVAL_MS)
    outgoing.timer.unref()
    this.#say([this.#self, queueName, ...parts].join('~'))
  }

  #say(words: string): void {
    if (this.#stopped) return
    this.#db.notify(CHANNEL, words).catch((error: unknown) => {
      this.#log.debug({ err: error }, 'other servers were not told; they will poll')
    })
  }
}
