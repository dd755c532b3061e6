/**
 * Tells the couriers of other servers which consumers have ready jobs that this server does not get to. A hint: they look every now
 * and then anyway, and behind a pooler they hear nothing. A notification makes all commits of the database wait for its own; so those
 * that come within a moment share one, and who delivers everything itself says nothing.
 */
import type { Log } from '../../core/log.ts'
import type { Database } from '../../db/database.ts'

const CHANNEL = 'bartleby_webhooks'
const INTERVAL_MS = 50
/** Consumers in one notification, which holds 8,000 bytes. */
const MOST_NAMED = 500

export class Announcer {
  readonly #db: Database
  readonly #log: Log
  readonly #self = crypto.randomUUID()
  readonly #unsaid = new Set<number>()
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(db: Database, log: Log) {
    this.#db = db
    this.#log = log
  }

  /** Calls `hear` with the consumers that other servers name. */
  listen(hear: (consumers: readonly number[]) => void): void {
    this.#db
      .listen(CHANNEL, (payload) => {
        const [from, ...consumers] = payload.split('~')
        if (from !== this.#self) hear(consumers.map(Number))
      })
      .catch((error: unknown) =>
        this.#log.warn(
          { err: error },
          'ready webhook jobs of other servers are not heard of; they are looked for',
        ),
      )
  }

  /** These consumers have ready jobs. The first are told at once. */
  announce(consumers: Iterable<number>): void {
    if (this.#stopped || this.#db.dialect === 'sqlite') return
    for (const consumer of consumers) this.#unsaid.add(consumer)
    if (this.#timer === undefined) this.#send()
  }

  /** Tells what was not told yet. Not waited for: a store that does not answer must not hold up the end. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#send()
  }

  #send(): void {
    if (this.#unsaid.size === 0) return
    const named = [...this.#unsaid].slice(0, MOST_NAMED)
    for (const consumer of named) this.#unsaid.delete(consumer)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (!this.#stopped) this.#send()
    }, INTERVAL_MS)
    this.#timer.unref()
    this.#db.notify(CHANNEL, [this.#self, ...named].join('~')).catch((error: unknown) => {
      this.#log.debug({ err: error }, 'ready webhook jobs not announced; other servers will look')
    })
  }
}
