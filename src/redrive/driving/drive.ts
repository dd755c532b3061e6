/**
 * One redrive under way on this server: batch after batch of its lanes, at its rate, with a look at the outcomes every quarter of a
 * second. Everything that must survive is in the store.
 */
import { type Clock, type Instant, later } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Xid } from '../../core/xid.ts'
import type { SourceName } from '../../letters/kinds.ts'
import type { LetterSource } from '../../letters/source.ts'
import { inOffice } from '../../letters/work.ts'
import type { Database } from '../../store/database.ts'
import { Pace } from '../../work/pace.ts'
import type { Course, Here, Next } from '../../work/run.ts'
import { noteProgress, type Run } from '../../work/run-rows.ts'
import { decide, type Verdict } from '../commands.ts'
import { placeOf } from '../planning/destinations.ts'
import { isWorking, type RedriveAction, type RedriveCounts, type RedriveState } from '../redrive.ts'
import type { Repairer } from '../repair/repairer.ts'
import { readProgress } from '../rows/counts.ts'
import { type CountedLane, holdLanes, type LaneStep, remainingOf } from '../rows/lanes.ts'
import { lockRedrive, readRedrive, type StoredRedrive, writeRedrive } from '../rows/rows.ts'
import { type BatchDone, runBatch } from './batch.ts'
import { isObstacle, isPassing, reasonOf } from './obstacles.ts'
import {
  canaryVerdict,
  haltNote,
  isCanarySent,
  leftOfCanary,
  lookAgain,
  readRecent,
  saysHalt,
} from './stop-rule.ts'

export interface Step {
  readonly action: RedriveAction
  readonly sent: number
  readonly skipped: number
  readonly failed: number
}

export interface DriveParts extends Here {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly repairer: Repairer
  readonly onStep: (step: Step) => void
  readonly onEnded: (state: RedriveState) => void
}

/** Distance between looks at the outcomes. */
const LOOK_US = 250_000n
const BATCH = { postgres: 1_000, sqlite: 250 } as const
/** Lanes at once; PostgreSQL has a process for each. */
const AT_ONCE = { postgres: 2, sqlite: 1 } as const

export class Drive implements Course {
  readonly #parts: DriveParts
  readonly #id: Xid
  readonly #pace: Pace
  readonly #lanes = new LaneTurns()
  /** As of the latest look. */
  #seen: StoredRedrive | null = null
  #lookAt: Instant
  #noted = ''

  constructor(parts: DriveParts, { id, rate }: Run) {
    this.#parts = parts
    this.#id = id
    this.#pace = new Pace(parts.clock, rate)
    this.#lookAt = parts.clock.now()
  }

  /** Looks, when it is time; sends; waits, when nothing can be sent. */
  readonly round = async (isWoken: boolean): Promise<Next> => {
    const { clock, yielding, signal } = this.#parts
    if (this.#seen === null) await this.#waitForOthers()
    if ((isWoken || clock.now() >= this.#lookAt) && (await this.#look()) === 'over') return 'over'
    const startedMs = performance.now()
    if (!(await this.#send())) {
      const isDone = this.#lanes.areDone && this.#redrive.state === 'running'
      return isDone ? this.#decide({ state: 'done', note: null }) : this.#nextAt()
    }
    // The wait for outcomes starts with the last letter of the canary.
    if (this.#isCanaryOut) this.#lookNext()
    await yielding.rest(performance.now() - startedMs, signal)
    return 'more'
  }

  readonly pause = (note: string): Promise<Next> => this.#decide({ state: 'paused', note })
  readonly obstacle = (error: unknown): string | null => (isObstacle(error) ? reasonOf(error) : null)
  readonly isPassing = isPassing

  #lookNext(): void {
    this.#lookAt = this.#parts.clock.now()
  }

  get #redrive(): StoredRedrive {
    if (this.#seen === null) throw new Error(`redrive ${this.#id} was not looked at`)
    return this.#seen
  }

  /** The server before may still have batches running. */
  #waitForOthers(): Promise<void> {
    return this.#parts.db.transaction('redrive.take', async (tx) => {
      const redrive = await readRedrive(tx, this.#id)
      if (redrive !== null) await holdLanes(tx, redrive.number)
    })
  }

  /** Reads the redrive and its outcomes again. */
  async #look(): Promise<'more' | 'over'> {
    const { db, clock, owner } = this.#parts
    this.#lookAt = later(clock.now(), LOOK_US)
    const looked = await db.session('redrive.look', async (session) => {
      const redrive = await readRedrive(session, this.#id)
      return redrive === null ? null : { redrive, ...(await readProgress(session, redrive)) }
    })
    if (looked === null || looked.redrive.owner !== owner) return 'over'
    this.#seen = looked.redrive
    // Another server may have driven it for a while, and a batch does not always report back.
    this.#lanes.learn(looked.lanes)
    if (!isWorking(looked.redrive.state)) return 'over'
    this.#pace.change(looked.redrive.terms.rate)
    await this.#noteProgress(looked.counts)
    const verdict = (await this.#stopVerdict(looked.counts)) ?? (await this.#canaryVerdict(looked.counts))
    return verdict === null ? 'more' : this.#decide(verdict)
  }

  async #noteProgress({ sent: done, skipped, failed }: RedriveCounts): Promise<void> {
    const { db, owner } = this.#parts
    const progress = { done, skipped, failed, rateNow: this.#pace.perSecond }
    const noted = JSON.stringify(progress)
    if (noted === this.#noted) return
    this.#noted = noted
    await db.session('redrive.progress', (session) => noteProgress(session, this.#id, owner, progress))
  }

  async #stopVerdict(counts: RedriveCounts): Promise<Verdict | null> {
    const { stopRule } = this.#redrive.terms
    if (stopRule === null) return null
    const before = readRecent(this.#redrive.recent)
    const recent = lookAgain(before, counts, stopRule)
    if (saysHalt(recent, stopRule)) return { state: 'stopped', note: haltNote(recent, stopRule) }
    const isNew =
      recent.seen.confirmed !== before.seen.confirmed || recent.seen.returned !== before.seen.returned
    if (isNew) await this.#note({ recent: JSON.stringify(recent) })
    return null
  }

  async #canaryVerdict(counts: RedriveCounts): Promise<Verdict | null> {
    const { state, terms, canarySentAt } = this.#redrive
    if (state !== 'canary' || terms.canary === null || !isCanarySent(terms.canary, counts)) return null
    const now = this.#parts.clock.now()
    if (canarySentAt === null) await this.#note({ canarySentAt: now })
    return canaryVerdict(terms.canary, counts, now - (canarySentAt ?? now))
  }

  /** Writes what only the driving server decides. */
  async #note(change: { readonly recent?: string; readonly canarySentAt?: Instant }): Promise<void> {
    const { db, owner } = this.#parts
    await db.transaction('redrive.note', async (tx) => {
      const redrive = await lockRedrive(tx, this.#id)
      if (redrive?.owner === owner) await writeRedrive(tx, { ...redrive, ...change })
    })
    this.#seen = { ...this.#redrive, ...change }
  }

  async #decide(verdict: Verdict): Promise<'more' | 'over'> {
    const { db, clock, log, owner, onEnded } = this.#parts
    const isDecided = await inOffice(db, clock, 'redrive.decide', (work) =>
      decide(work, this.#id, owner, verdict),
    )
    this.#lookNext()
    if (!isDecided) return 'more'
    log.info({ redrive: this.#id, state: verdict.state, note: verdict.note }, 'redrive changed its state')
    if (verdict.state === 'running') return 'more'
    if (verdict.state !== 'paused') onEnded(verdict.state)
    return 'over'
  }

  /** Whether the last canary letter was sent. Looking earlier would let waiting lanes try in vain. */
  get #isCanaryOut(): boolean {
    const { state, terms } = this.#redrive
    return state === 'canary' && terms.canary !== null && leftOfCanary(terms.canary, this.#lanes.sent) <= 0
  }

  async #send(): Promise<boolean> {
    const { state, terms } = this.#redrive
    const isCanary = state === 'canary' && terms.canary !== null
    let left = isCanary ? leftOfCanary(terms.canary, this.#lanes.sent) : Number.POSITIVE_INFINITY
    const { db, yielding } = this.#parts
    const atOnce = isCanary || yielding.isLive ? 1 : AT_ONCE[db.dialect]
    const open = this.#lanes.open()
    const share = isCanary
      ? Math.max(1, Math.ceil(left / Math.max(1, open.length)))
      : Number.POSITIVE_INFINITY
    const reserved = new Map<string, number>()
    const batches: Promise<void>[] = []
    for (const lane of open) {
      if (batches.length === atOnce || left <= 0) break
      const place = placeOf(lane)
      const taken = reserved.get(place) ?? 0
      const allowed = this.#pace.allowed(place) - taken
      const size = Math.min(BATCH[db.dialect], remainingOf(lane), allowed, left, share)
      if (size < 1) continue
      reserved.set(place, taken + size)
      left -= size
      batches.push(this.#runLane(lane, size))
      this.#lanes.took(lane)
    }
    if (batches.length === 0) return false
    const ended = await Promise.allSettled(batches)
    for (const batch of ended) if (batch.status === 'rejected') throw batch.reason
    return true
  }

  async #runLane(lane: CountedLane, size: number): Promise<void> {
    const { db, clock, owner, repairer, sources } = this.#parts
    const source = sources.get(lane.source)
    if (source === undefined) throw new Error(`no source is named '${lane.source}'`)
    const terms = { owner, size, source, repairer }
    const result = await runBatch(db, clock, this.#redrive, lane, terms)
    if (result.outcome === 'halted') this.#lookNext()
    else this.#count(lane, result)
  }

  #count(lane: CountedLane, { sent, skipped, failed, terms }: BatchDone): void {
    const step = { sent, skipped, failed }
    this.#lanes.count(lane, step)
    this.#pace.sent(placeOf(lane), sent)
    this.#pace.change(terms.rate)
    this.#parts.onStep({ action: this.#redrive.action, ...step })
  }

  #nextAt(): Instant {
    const open = this.#redrive.state === 'running' ? this.#lanes.open() : []
    return this.#pace.wakeAt(open.map(placeOf), this.#lookAt)
  }
}

/** The lanes of a redrive as this server knows them, each in its turn. */
export class LaneTurns {
  #lanes: readonly CountedLane[] = []
  /** Lanes that cannot go on before another one does. */
  readonly #waiting = new Set<number>()
  #next = 0
  /** Steps done in any lane, now and when each lane's batch began. */
  #steps = 0
  readonly #stepsBefore = new Map<number, number>()

  /** The lanes as the store has them. */
  learn(lanes: readonly CountedLane[]): void {
    this.#lanes = lanes
    this.#waiting.clear()
  }

  /** Lanes with letters left that do not wait, the next one first. */
  open(): readonly CountedLane[] {
    const next = this.#next % Math.max(1, this.#lanes.length)
    return [...this.#lanes.slice(next), ...this.#lanes.slice(0, next)].filter(
      (lane) => remainingOf(lane) > 0 && !this.#waiting.has(lane.lane),
    )
  }

  took({ lane }: CountedLane): void {
    this.#next = this.#lanes.findIndex((each) => each.lane === lane) + 1
    this.#stepsBefore.set(lane, this.#steps)
  }

  /**
   * Counts a step. A lane without one waits for the others, unless one of them went on meanwhile: the batch may have looked before that
   * was committed, and two lanes waiting for each other would stand still until the next look.
   */
  count({ lane }: CountedLane, { sent, skipped, failed }: Omit<LaneStep, 'to'>): void {
    if (sent + skipped + failed === 0) {
      if ((this.#stepsBefore.get(lane) ?? this.#steps) === this.#steps) this.#waiting.add(lane)
      return
    }
    this.#steps++
    this.#waiting.clear()
    this.#lanes = this.#lanes.map((each) =>
      each.lane === lane
        ? { ...each, sent: each.sent + sent, skipped: each.skipped + skipped, failed: each.failed + failed }
        : each,
    )
  }

  get sent(): number {
    return this.#lanes.reduce((sum, { sent }) => sum + sent, 0)
  }

  get areDone(): boolean {
    return this.#lanes.every((lane) => remainingOf(lane) === 0)
  }
}
