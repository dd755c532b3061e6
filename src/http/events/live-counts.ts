/**
 * The counts of the office and the redrives that are under way as server-sent events, for any number of clients: they are read once
 * a second for all of them together, and not at all while nobody listens. A client is told at once, and then whenever something has
 * changed: the counts, or the redrives.
 *
 * What cannot be kept up with is let go: a client that does not read, one whose session is over, all of them when the server stops.
 */
import type { Writable } from 'node:stream'
import type { Clock, Instant } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { Rounds } from '../../core/rounds.ts'
import { VERSION } from '../../core/version.ts'
import type { Summary } from '../../letters/numbers/summary.ts'
import type { RedriveStanding } from '../../redrive/redrive.ts'
import { redriveNews } from '../../redrive/view.ts'

export interface LiveCountsOptions {
  readonly read: () => Promise<Summary>
  /** Those that are under way or paused. */
  readonly redrives: () => Promise<readonly RedriveStanding[]>
  readonly clock: Clock
  readonly log: Log
}

interface Listener {
  readonly to: Writable
  /** Who listens; null while no tokens are configured. */
  readonly name: string | null
  /** When its session is over; null when it came with a token. */
  readonly deadline: Instant | null
}

export const MOST_LISTENERS = 200
/** Of one caller, so that nobody can take them all. */
export const MOST_OF_ONE = 50

const LOOK_US = 1_000_000n
/** Shorter than the half minute after which proxies close what is silent. */
const COMMENT_US = 15_000_000n
const RECONNECT_MS = 3_000
/** What a client may leave unread, beyond what the system holds for it: some hundred events. */
const MOST_UNREAD_BYTES = 16_384

/** How long a client may take to see the end, once the server stops. */
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
  /** Apart from the looks, for which a slow store may take its time. */
  readonly #partings: Rounds
  readonly #looks: Rounds
  #commentedAt: Instant
  /** What was said last, for those who come later: one event of each kind. Nothing before the first reading. */
  #said: readonly string[] = []

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

  /** Whether a caller has as many as one may have. */
  isFullFor(name: string): boolean {
    return [...this.#listeners].filter((listener) => listener.name === name).length >= MOST_OF_ONE
  }

  /** Sends to `to` from now on, until it is closed or `deadline` has come. */
  add(to: Writable, deadline: Instant | null, name: string | null = null): void {
    const listener = { to, deadline, name }
    this.#listeners.add(listener)
    to.once('close', () => this.#remove(listener))
    // It is closed after that; why is the client's business.
    to.on('error', () => {})
    send(listener, HELLO + this.#said.join(''))
    if (this.#listeners.size === 1) this.#begin()
  }

  /** Ends all that is being sent; nobody can keep the server waiting for long. */
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
    if (this.#listeners.size === 0) this.#said = []
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
      this.#tell(await this.#read())
    } catch (error) {
      this.#tell([TROUBLE])
      throw error
    }
  }

  #tell(now: readonly string[]): void {
    if (this.#listeners.size === 0) return
    const news = now.filter((text) => !this.#said.includes(text))
    this.#said = now
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

/** Writes, or gives a client up that has left too much unread. */
function send({ to }: Listener, text: string): void {
  if (to.destroyed || to.writableEnded) return
  if (to.writableLength > MOST_UNREAD_BYTES) to.destroy()
  else to.write(text)
}

/** Lets a client that reads see the end; one that does not would keep the server from its own. */
function end({ to }: Listener): void {
  if (to.writableLength > 0 || to.writableEnded) to.destroy()
  else to.end()
}
