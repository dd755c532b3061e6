/**
 * The outboxes as those who ask about them see them: metrics, health and the API. Counting a backlog costs what it holds, so
 * its numbers are used for twenty times as long as they took to read: whoever asks, and however often, counting takes at
 * most a twentieth of one connection, and a small backlog is always told as it is.
 */
import type { Clock } from '../core/clock.ts'
import { untilAborted } from '../outgoing/waiting.ts'
import { healthOf, type Looked, lookAt, type OutboxHealth } from './health.ts'
import type { MeterSnapshot } from './meter.ts'
import type { OutboxHandle, OutboxHandles } from './outbox-handle.ts'

export interface OutboxReading {
  readonly outbox: string
  readonly looked: Looked
  readonly meter: MeterSnapshot
  readonly health: OutboxHealth
}

/** How long numbers are used, in times of what they took to read; and at most. */
const REUSE_FACTOR = 20
const LONGEST_REUSE_MS = 10_000
/** Numbers that are told in place of ones that are late. */
const LATEST_AGE_MS = 60_000
const PATIENCE_MS = 10_000

interface Look {
  readonly answer: Promise<Looked>
  /** Endless until it is answered: all who ask meanwhile share it. */
  reusedUntilMs: number
}

interface Answer {
  readonly looked: Looked
  readonly atMs: number
}

export class OutboxReadings {
  /** The outboxes there are. */
  readonly handles: OutboxHandles
  readonly #clock: Clock
  readonly #steadyMs: () => number
  readonly #looks = new WeakMap<OutboxHandle, Look>()
  readonly #latest = new WeakMap<OutboxHandle, Answer>()

  constructor(
    handles: OutboxHandles,
    clock: Clock,
    /** Milliseconds since some moment; replaced in tests. */
    steadyMs: () => number = () => performance.now(),
  ) {
    this.handles = handles
    this.#clock = clock
    this.#steadyMs = steadyMs
  }

  /** What is known about every outbox, after `patienceMs` at the latest. */
  read({ patienceMs = PATIENCE_MS } = {}): Promise<readonly OutboxReading[]> {
    return Promise.all(this.handles().map((handle) => this.#readOne(handle, patienceMs)))
  }

  async #readOne(handle: OutboxHandle, patienceMs: number): Promise<OutboxReading> {
    const late = AbortSignal.timeout(patienceMs)
    const looked = await untilAborted(this.#look(handle), late).catch(() => this.#late(handle, patienceMs))
    return { outbox: handle.name, looked, meter: handle.meter.snapshot(), health: healthOf(handle, looked) }
  }

  #look(handle: OutboxHandle): Promise<Looked> {
    const known = this.#looks.get(handle)
    const startedMs = this.#steadyMs()
    if (known !== undefined && startedMs < known.reusedUntilMs) return known.answer
    const answer = lookAt(handle, this.#clock.now()).then((looked) => {
      const atMs = this.#steadyMs()
      look.reusedUntilMs = atMs + Math.min(LONGEST_REUSE_MS, REUSE_FACTOR * (atMs - startedMs))
      this.#latest.set(handle, { looked, atMs })
      return looked
    })
    const look: Look = { answer, reusedUntilMs: Number.POSITIVE_INFINITY }
    this.#looks.set(handle, look)
    return answer
  }

  #late(handle: OutboxHandle, patienceMs: number): Looked {
    const latest = this.#latest.get(handle)
    if (latest !== undefined && this.#steadyMs() - latest.atMs < LATEST_AGE_MS) return latest.looked
    const detail = `no answer within ${patienceMs} ms`
    return { ok: false, trouble: { what: 'its database is slow to answer', detail } }
  }
}
