/**
 * The clerk makes letters agree with the rows of outboxes: soon after a dispatcher of this server reports a change, and
 * every second for dispatchers elsewhere. Outboxes are visited side by side, so that none waits for another's database.
 */
import type { Log } from '../../../core/log.ts'
import { Rounds, type Service } from '../../../core/rounds.ts'
import { sleep } from '../../../core/waiting.ts'
import { togetherOrAlone } from '../../../store/bad-rows.ts'
import { learnLayout, type OutboxHandle, type OutboxHandles } from '../served/outbox-handle.ts'
import { type DueRow, letterRowsOf } from '../sql/letters.ts'
import { linesOf } from '../sql/line.ts'
import { type ReconciledOffice, reconcile } from './reconcile.ts'

export interface ClerkParts extends ReconciledOffice {
  readonly log: Log
  readonly handles: OutboxHandles
  /** Messages of this outbox became due. */
  dispatch(outbox: string): void
}

const EVERY_US = 1_000_000n
/** Rows per transaction: on SQLite everybody else waits for it. */
const BATCH = 200
const BATCH_BYTES = 4_000_000
/** Pause for others between two batches. */
const PAUSE_MS = 1

export class OutboxLetterClerk implements Service {
  readonly name = 'outbox.letters'
  readonly #parts: ClerkParts
  readonly #visits = new Map<string, Rounds>()

  constructor(parts: ClerkParts) {
    this.#parts = parts
  }

  get rounds(): readonly Rounds[] {
    return this.#parts.handles().map((handle) => this.#visitsOf(handle))
  }

  start(): void {
    for (const visits of this.rounds) visits.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.rounds.map((visits) => visits.stop()))
  }

  wake(outbox: string): void {
    const handle = this.#parts.handles().find(({ name }) => name === outbox)
    if (handle !== undefined) void this.#visitsOf(handle).now()
  }

  #visitsOf(handle: OutboxHandle): Rounds {
    const known = this.#visits.get(handle.name)
    if (known !== undefined) return known
    const { clock, log } = this.#parts
    const visits = new Rounds({
      ...{ name: `${this.name}:${handle.name}`, clock, log, everyUs: EVERY_US },
      act: (signal) => reconcileOutbox(this.#parts, handle, signal),
      trouble: 'the office was not told about dead messages of an outbox; it is tried again every second',
      about: { outbox: handle.name },
    })
    this.#visits.set(handle.name, visits)
    return visits
  }
}

/** Gives about how many rows there were. */
export async function reconcileOutbox(
  parts: Omit<ClerkParts, 'handles'>,
  handle: OutboxHandle,
  signal: AbortSignal,
): Promise<number> {
  const layout = await learnLayout(handle)
  const rows = letterRowsOf(layout)
  const agree = async (ids: readonly string[]): Promise<number> => {
    const { reconciled, letGo } = await reconcile(parts, handle, layout, ids)
    if (letGo.length > 0) {
      await linesOf(layout).release(handle.db, letGo, handle.onDead)
      parts.dispatch(handle.name)
    }
    return reconciled.length
  }
  const onBad = (id: string, error: unknown) =>
    parts.log.warn({ err: error, outbox: handle.name, id }, 'the office was not told about a message')
  let rowCount = 0
  for (let after: string | null = null; !signal.aborted; ) {
    const from: string | null = after
    const due = await handle.db.session('outbox.due', (session) => rows.due(session, from, BATCH))
    const batch = cut(due)
    const last = batch.at(-1)
    if (last === undefined) break
    const ids = batch.map(({ id }) => id)
    rowCount += await togetherOrAlone(ids, agree, onBad, signal)
    if (batch.length === due.length && due.length < BATCH) break
    after = last.id
    await sleep(PAUSE_MS, signal)
  }
  return rowCount
}

/** As many as fit one transaction; at least one. */
function cut(due: readonly DueRow[]): readonly DueRow[] {
  let bytes = 0
  const end = due.findIndex(({ payloadBytes }) => {
    bytes += payloadBytes
    return bytes > BATCH_BYTES
  })
  return end < 0 ? due : due.slice(0, end + 1)
}
