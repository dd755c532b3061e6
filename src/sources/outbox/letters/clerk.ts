/**
 * The clerk who makes letters agree with the rows of outboxes: soon after a dispatcher of this server says that
 * they differ, and every second besides, because dispatchers elsewhere say nothing. The outboxes are
 * visited side by side, so that none waits for a database that does not answer.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../../core/log.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import type { Layout } from '../layout.ts'
import { learnLayout, type OutboxHandle, type OutboxHandles } from '../outbox-handle.ts'
import { type DueRow, letterRowsOf } from '../sql/letters.ts'
import { linesOf } from '../sql/line.ts'
import { type ReconciledOffice, reconcile } from './reconcile.ts'

export interface ClerkParts extends ReconciledOffice {
  readonly log: Log
  readonly handles: OutboxHandles
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
  readonly #parts: ClerkParts
  readonly #stopped = new AbortController()
  readonly #desks = new Map<string, Desk>()
  #timer: NodeJS.Timeout | undefined

  constructor(parts: ClerkParts) {
    this.#parts = parts
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

  /** Rows of this outbox, or of any, may differ from their letters. */
  wake(outbox?: string): void {
    if (this.#stopped.signal.aborted) return
    for (const handle of this.#parts.handles()) {
      if (outbox !== undefined && handle.name !== outbox) continue
      const desk = this.#deskOf(handle)
      if (desk.visit !== undefined) desk.again ||= outbox !== undefined
      else this.#visitInBackground(handle, desk)
    }
  }

  /** Makes everything agree now; gives about how many rows there were. */
  async reconcileNow(): Promise<number> {
    const visits = this.#parts.handles().map(async (handle) => {
      const desk = this.#deskOf(handle)
      await desk.visit?.catch(() => {})
      return this.#visit(handle, desk)
    })
    return (await Promise.all(visits)).reduce((sum, rows) => sum + rows, 0)
  }

  #deskOf({ name }: OutboxHandle): Desk {
    const desk = this.#desks.get(name) ?? { visit: undefined, again: false, troubled: false }
    this.#desks.set(name, desk)
    return desk
  }

  #visitInBackground(handle: OutboxHandle, desk: Desk): void {
    this.#visit(handle, desk)
      .then(() => {
        desk.troubled = false
      })
      .catch((error: unknown) => {
        if (!desk.troubled)
          this.#parts.log.warn(
            { err: error, outbox: handle.name },
            'the office was not told about dead messages of an outbox; it is tried again every second',
          )
        desk.troubled = true
      })
      .finally(() => {
        if (!desk.again) return
        desk.again = false
        this.wake(handle.name)
      })
  }

  #visit(handle: OutboxHandle, desk: Desk): Promise<number> {
    const visit = this.#reconcileAll(handle).finally(() => {
      if (desk.visit === visit) desk.visit = undefined
    })
    desk.visit = visit
    return visit
  }

  async #reconcileAll(handle: OutboxHandle): Promise<number> {
    const layout = await learnLayout(handle)
    const rows = letterRowsOf(layout)
    let rowCount = 0
    for (let after: string | null = null; !this.#stopped.signal.aborted; ) {
      const from: string | null = after
      const due = await handle.db.session('outbox.due', (session) => rows.due(session, from, BATCH))
      const batch = cut(due)
      const last = batch.at(-1)
      if (last === undefined) break
      const ids = batch.map(({ id }) => id)
      rowCount += await this.#reconcile(handle, layout, ids)
      if (batch.length === due.length && due.length < BATCH) break
      after = last.id
      await pause(PAUSE_MS)
    }
    return rowCount
  }

  /** A batch that fails is taken row by row, so that one that always fails does not stand in the way of others. */
  async #reconcile(handle: OutboxHandle, layout: Layout, ids: readonly string[]): Promise<number> {
    try {
      const { reconciled, letGo } = await reconcile(this.#parts, handle, layout, ids)
      if (letGo.length > 0) {
        await linesOf(layout).release(handle.db, letGo, handle.onDead)
        this.#parts.dispatch(handle.name)
      }
      return reconciled.length
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      const [id] = ids
      if (ids.length === 1) {
        this.#parts.log.warn(
          { err: error, outbox: handle.name, id },
          'the office was not told about a message',
        )
        return 0
      }
      let rowCount = 0
      for (const id of ids) rowCount += await this.#reconcile(handle, layout, [id])
      return rowCount
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
