/**
 * Counts of the office and redrives under way as server-sent events. They are read once a second for all clients together, and not at all
 * while nobody listens. A client gets them at once and then whenever something has changed. A client that does not read, or whose session
 * is over, is let go; so are all when the server stops.
 */
import type { Writable } from 'node:stream'
import type { Clock, Instant } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { Rounds } from '../../core/rounds.ts'
import { VERSION } from '../../core/version.ts'
import type { Summary } from '../../letters/numbers/summary.ts'
import type { RedriveStanding } from '../../redrive/redrive.ts'
import { redriveNews } from '../../redrive/view.ts'

interface LiveCountsOptions {
  readonly read: () => Promise<Summary>
  readonly redrives: () => Promise<readonly RedriveStanding[]>
  readonly clock: Clock
  readonly log: Log
}

interface Listener {
  readonly to: Writable
  /** null while no tokens are configured. */
  readonly name: string | null
  /** End of its session; null for a client with a token. */
  readonly deadline: Instant | null
}

export const MOST_LISTENERS = 200
/** Of one caller, so that nobody can take them all. */
export const MOST_OF_ONE = 50

const LOOK_US = 1_000_000n
/** Below the half minute after which proxies close a silent stream. */
const COMMENT_US = 15_000_000n
const RECONNECT_MS = 3_000
/** What a client may leave unread, beyond the system's buffer: some hundred events. */
const MOST_UNREAD_BYTES = 16_384

/** How long a client may take to see the end once the server stops. */
const PARTING_MS = 1_000

const event = (name: string, content: object): string =>
  `event: ${name}\ndata: ${JSON.stringify(content)}\n\n`

const HELLO = `retry: ${RECONNECT_MS}\n\n${event('hello', { version: VERSION })}`
const COMMENT = ': still here\n\n'
const TROUBLE = event('trouble', {
  message: 'the counts cannot be read; the store does not answer, they are sent again as soon as it does',
})

export class LiveCounts {
  readonly #options: LiveCountsOptions
  readonly #listeners = new Set<Listener>()
  /** Apart from the looks, which a slow store may delay. */
  readonly #partings: Rounds
  readonly #looks: Rounds
  #commentedAt: Instant
  /** The latest event of each kind, for later clients; empty before the first reading. */
  #latest: readonly string[] = []

  constructor(options: LiveCountsOptions) {
    this.#options = options
    const { clock, log } = options
    this.#commentedAt = clock.now()
    const everyUs = () => (this.#listeners.size > 0 ? LOOK_US : null)
    const trouble = 'what listeners are told cannot be read'
    const every = { clock, log, everyUs, trouble, isFirstLater: true }
    this.#partings = new Rounds({ ...every, name: 'events.partings', act: () => this.#partOrComment() })
    this.#looks = new Rounds({ ...every, name: 'events.looks', act: () => this.#look() })
    for (const rounds of [this.#partings, this.#looks]) rounds.start()
  }

  get isFull(): boolean {
    return this.#listeners.size >= MOST_LISTENERS
  }

  isFullFor(name: string): boolean {
    return [...this.#listeners].filter((listener) => listener.name === name).length >= MOST_OF_ONE
  }

  /** Sends to `to` until it is closed or `deadline` has come. */
  add(to: Writable, deadline: Instant | null, name: string | null = null): void {
    const listener = { to, deadline, name }
    this.#listeners.add(listener)
    to.once('close', () => this.#remove(listener))
    // It is closed after an error; why is the client's business.
    to.on('error', () => {})
    send(listener, HELLO + this.#latest.join(''))
    if (this.#listeners.size === 1) this.#begin()
  }

  /** Ends all streams; nobody can keep the server waiting for long. */
  stop(): void {
    for (const listener of this.#listeners) end(listener)
    const cutOff = () => {
      for (const { to } of this.#listeners) to.destroy()
    }
    setTimeout(cutOff, PARTING_MS).unref()
    for (const rounds of [this.#partings, this.#looks]) void rounds.stop()
  }

  #remove(listener: Listener): void {
    this.#listeners.delete(listener)
    if (this.#listeners.size === 0) this.#latest = []
  }

  #begin(): void {
    this.#commentedAt = this.#options.clock.now()
    void this.#looks.now()
    void this.#partings.now()
  }

  #partOrComment(): void {
    const now = this.#options.clock.now()
    for (const listener of this.#listeners) {
      if (listener.deadline !== null && now >= listener.deadline) end(listener)
    }
    if (now - this.#commentedAt >= COMMENT_US) {
      this.#commentedAt = now
      this.#sendAll(COMMENT)
    }
  }

  async #look(): Promise<void> {
    if (this.#listeners.size === 0) return
    try {
      this.#publish(await this.#read())
    } catch (error) {
      this.#publish([TROUBLE])
      throw error
    }
  }

  #publish(now: readonly string[]): void {
    if (this.#listeners.size === 0) return
    const news = now.filter((text) => !this.#latest.includes(text))
    this.#latest = now
    if (news.length > 0) this.#sendAll(news.join(''))
  }

  async #read(): Promise<readonly string[]> {
    const [counts, redrives] = await Promise.all([this.#options.read(), this.#options.redrives()])
    const { Pending, Resolved, Expired, captured, unconfirmed } = counts
    return [
      event('counts', { Pending, Resolved, Expired, captured, unconfirmed }),
      event('redrives', { items: redrives.map(redriveNews) }),
    ]
  }

  #sendAll(text: string): void {
    for (const listener of this.#listeners) send(listener, text)
  }
}

/** Writes, or gives up a client that has left too much unread. */
function send({ to }: Listener, text: string): void {
  if (to.destroyed || to.writableEnded) return
  if (to.writableLength > MOST_UNREAD_BYTES) to.destroy()
  else to.write(text)
}

/** Lets a reading client see the end; another one would keep the server from its own. */
function end({ to }: Listener): void {
  if (to.writableLength > 0 || to.writableEnded) to.destroy()
  else to.end()
}
