/**
 * Tells other servers that items became leasable, so that their waiting leases look. A hint: they poll anyway.
 * A notification per insert would cost two thirds of the throughput; so at most one per queue and interval goes
 * out, the first at once.
 */
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import type { Arrival } from './cycle.ts'

const CHANNEL = 'bartleby_arrivals'
const INTERVAL_MS = 10

interface Outgoing {
  /** Lowest serial per part since the last notification. */
  readonly firstSerials: Map<number, number>
  timer: NodeJS.Timeout | undefined
}

export class Announcer {
  readonly #db: Database
  readonly #log: Log
  readonly #outgoing = new Map<string, Outgoing>()
  readonly #self = crypto.randomUUID()
  #stopped = false

  constructor(db: Database, log: Log) {
    this.#db = db
    this.#log = log
  }

  /** Calls `hear` for arrivals that other servers announce. */
  async listen(hear: (arrival: Arrival) => void): Promise<void> {
    await this.#db.listen(CHANNEL, (payload) => {
      const [from, queueName, ...parts] = payload.split('~')
      if (from === this.#self || queueName === undefined) return
      for (const entry of parts) {
        const [part, firstSerial] = entry.split(':').map(Number)
        if (part !== undefined && firstSerial !== undefined) hear({ queueName, part, firstSerial })
      }
    })
  }

  announce({ queueName, part, firstSerial }: Arrival): void {
    if (this.#stopped || this.#db.dialect === 'sqlite') return
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
    for (const { timer } of this.#outgoing.values()) clearTimeout(timer)
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
    this.#db.notify(CHANNEL, [this.#self, queueName, ...parts].join('~')).catch((error: unknown) => {
      this.#log.debug({ queue: queueName, err: error }, 'arrival not announced; other servers will poll')
    })
  }
}
