/**
 * The clerk who tells the office what became of the rows of its outboxes: soon after a dispatcher of this server says that
 * there is something to tell, and every second besides, because dispatchers elsewhere say nothing. The outboxes are
 * visited side by side, so that none waits for a database that does not answer.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { type Database, StoreUnavailable } from '../../db/database.ts'
import type { Registers } from '../../letters/death-note.ts'
import type { Layout } from '../layout.ts'
import type { OutboxPost } from '../post.ts'
import { type DueRow, letterRowsOf } from '../sql/letters.ts'
import { linesOf } from '../sql/line.ts'
import { learnLayout } from './known-layouts.ts'
import { type ToldOffice, tellOffice } from './tell.ts'

/** The outboxes that an office knows. */
export interface OutboxPosts {
  all(): readonly OutboxPost[]
}

export interface ClerkOptions {
  readonly registers: Registers
  readonly posts: OutboxPosts
  /** Messages of this outbox are due now that were not before. */
  dispatch(outbox: string): void
}

const EVERY_MS = 1_000
/** Rows of one transaction: on SQLite everybody else waits for it. */
const BATCH = 200
/** A batch ends with the row that exceeds this. */
const BATCH_BYTES = 4_000_000
/** What the store is left to others between two batches. */
const PAUSE_MS = 1

/** One outbox as the clerk sees it. */
interface Desk {
  /** The visit under way. */
  visit: Promise<number> | undefined
  /** Somebody asked for another visit meanwhile. */
  again: boolean
  /** The last visit failed, and that was said. */
  troubled: boolean
}

export class OutboxLetterClerk {
  readonly #office: ToldOffice
  readonly #log: Log
  readonly #posts: OutboxPosts
  readonly #dispatch: (outbox: string) => void
  readonly #stopped = new AbortController()
  readonly #desks = new Map<string, Desk>()
  #timer: NodeJS.Timeout | undefined

  constructor(db: Database, clock: Clock, log: Log, { registers, posts, dispatch }: ClerkOptions) {
    this.#office = { db, clock, registers }
    this.#log = log
    this.#posts = posts
    this.#dispatch = dispatch
  }

  start(): void {
    this.#timer = setInterval(() => this.wake(), EVERY_MS)
    this.#timer.unref()
    this.wake()
  }

  /** Ends after the batches at hand. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    clearInterval(this.#timer)
    await Promise.allSettled([...this.#desks.values()].map(({ visit }) => visit))
  }

  /** There may be something to tell about this outbox, or about any. */
  wake(outbox?: string): void {
    if (this.#stopped.signal.aborted) return
    for (const post of this.#posts.all()) {
      if (outbox !== undefined && post.name !== outbox) continue
      const desk = this.#deskOf(post)
      if (desk.visit !== undefined) desk.again ||= outbox !== undefined
      else this.#visitInBackground(post, desk)
    }
  }

  /** Tells everything that is to be told now; gives about how many rows. */
  async tellNow(): Promise<number> {
    const visits = this.#posts.all().map(async (post) => {
      const desk = this.#deskOf(post)
      await desk.visit?.catch(() => {})
      return this.#visit(post, desk)
    })
    return (await Promise.all(visits)).reduce((sum, rows) => sum + rows, 0)
  }

  #deskOf({ name }: OutboxPost): Desk {
    const desk = this.#desks.get(name) ?? { visit: undefined, again: false, troubled: false }
    this.#desks.set(name, desk)
    return desk
  }

  #visitInBackground(post: OutboxPost, desk: Desk): void {
    this.#visit(post, desk)
      .then(() => {
        desk.troubled = false
      })
      .catch((error: unknown) => {
        if (!desk.troubled)
          this.#log.warn(
            { err: error, outbox: post.name },
            'the office was not told about dead messages of an outbox; it is tried again every second',
          )
        desk.troubled = true
      })
      .finally(() => {
        if (!desk.again) return
        desk.again = false
        this.wake(post.name)
      })
  }

  #visit(post: OutboxPost, desk: Desk): Promise<number> {
    const visit = this.#tellAll(post).finally(() => {
      if (desk.visit === visit) desk.visit = undefined
    })
    desk.visit = visit
    return visit
  }

  async #tellAll(post: OutboxPost): Promise<number> {
    const layout = await learnLayout(post)
    const rows = letterRowsOf(layout)
    let told = 0
    for (let after: string | null = null; !this.#stopped.signal.aborted; ) {
      const from: string | null = after
      const due = await post.db.session('outbox.due', (session) => rows.due(session, from, BATCH))
      const batch = cut(due)
      const last = batch.at(-1)
      if (last === undefined) break
      told += await this.#tell(
        post,
        layout,
        batch.map(({ id }) => id),
      )
      if (batch.length === due.length && due.length < BATCH) break
      after = last.id
      await pause(PAUSE_MS)
    }
    return told
  }

  /** A batch that cannot be told is told row by row, so that one that never can be does not stand in the way of others. */
  async #tell(post: OutboxPost, layout: Layout, ids: readonly string[]): Promise<number> {
    try {
      const { told, letGo } = await tellOffice(this.#office, post, layout, ids)
      if (letGo.length > 0) {
        await linesOf(layout).release(post.db, letGo, post.onDead)
        this.#dispatch(post.name)
      }
      return told.length
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      const [id] = ids
      if (ids.length === 1) {
        this.#log.warn({ err: error, outbox: post.name, id }, 'the office was not told about a message')
        return 0
      }
      let told = 0
      for (const id of ids) told += await this.#tell(post, layout, [id])
      return told
    }
  }
}

/** As many of the first as are not too much for one transaction; at least one. */
function cut(due: readonly DueRow[]): readonly DueRow[] {
  let bytes = 0
  const end = due.findIndex(({ payloadBytes }) => {
    bytes += payloadBytes
    return bytes > BATCH_BYTES
  })
  return end < 0 ? due : due.slice(0, end + 1)
}
