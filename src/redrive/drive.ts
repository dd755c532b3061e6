/**
 * One redrive under way on this server: batch after batch of its lanes, at its rate, with a look at what became of the letters every
 * quarter of a second. Everything that must survive is in the store; what is here can be lost.
 */
import { type Clock, type Instant, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Xid } from '../core/xid.ts'
import type { Database } from '../db/database.ts'
import type { SourceName } from '../letters/letter.ts'
import type { LetterSource } from '../letters/source.ts'
import { inOffice } from '../letters/work.ts'
import type { Courtesy } from '../work/courtesy.ts'
import { Pace } from '../work/pace.ts'
import { RecentRate } from '../work/recent-rate.ts'
import type { Walk } from '../work/run.ts'
import { noteProgress, type Run } from '../work/run-rows.ts'
import { type BatchDone, runBatch } from './batch.ts'
import { decide, type Verdict } from './commands.ts'
import { readProgress } from './counts.ts'
import { placeOf } from './destinations.ts'
import { LaneTurns } from './lane-turns.ts'
import { type CountedLane, holdLanes, remainingOf } from './lanes.ts'
import { isObstacle, isPassing, wordsOf } from './obstacles.ts'
import { isWorking, type RedriveAction, type RedriveCounts, type RedriveState } from './redrive.ts'
import type { Repairer } from './repair/repairer.ts'
import { lockRedrive, readRedrive, type StoredRedrive, writeRedrive } from './rows.ts'
import {
  canaryVerdict,
  haltNote,
  isCanarySent,
  leftOfCanary,
  lookAgain,
  readRecent,
  saysHalt,
} from './stop-rule.ts'

/** What was done in one batch. */
export interface Step {
  readonly action: RedriveAction
  readonly sent: number
  readonly skipped: number
  readonly failed: number
}

export interface DriveParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly owner: string
  /** Ends it after the batch at hand; whoever is next goes on with it. */
  readonly signal: AbortSignal
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly repairer: Repairer
  readonly courtesy: Courtesy
  readonly onStep: (step: Step) => void
  readonly onEnded: (state: RedriveState) => void
}

/** How often the outcomes are looked at, and it is noted how far it is. */
const LOOK_US = 250_000n
/** Letters of one transaction. */
const BATCH = { postgres: 1_000, sqlite: 250 } as const
/** Lanes at once. PostgreSQL has a process for each of them. */
const AT_ONCE = { postgres: 2, sqlite: 1 } as const
/** Letters of a rate are sent this often, so that a high one does not cost a transaction for each of them. */
const TICK_US = 50_000n
/** How often what may pass is tried again, and how far apart. */
const MOST_TRIES = 30
const TRY_AGAIN_US = 1_000_000n

export class Drive implements Walk {
  readonly #parts: DriveParts
  readonly #id: Xid
  readonly #pace: Pace
  readonly #rate: RecentRate
  readonly #lanes = new LaneTurns()
  /** As it was last looked at. */
  #seen: StoredRedrive | null = null
  #lookAt: Instant
  /** What was noted last of how far it is. */
  #noted = ''
  #tries = 0
  /** Ends the wait at hand. */
  #wakeUp: (() => void) | null = null
  #isWoken = false
  readonly #onQuiet = new Set<() => void>()

  constructor(parts: DriveParts, { id, rate }: Run) {
    this.#parts = parts
    this.#id = id
    this.#pace = new Pace(parts.clock, rate)
    this.#rate = new RecentRate(parts.clock)
    this.#lookAt = parts.clock.now()
  }

  async go(): Promise<boolean> {
    const { signal } = this.#parts
    try {
      while (!signal.aborted) if (!(await this.#round())) return false
      return true
    } finally {
      for (const quiet of this.#onQuiet) quiet()
    }
  }

  wake(): void {
    this.#isWoken = true
    this.#wakeUp?.()
  }

  quiet(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const quiet = () => {
      this.#onQuiet.delete(quiet)
      resolve()
    }
    this.#onQuiet.add(quiet)
    this.wake()
    return promise
  }

  /** One round: look, when it is time; send; wait, when nothing can be sent. False: it is over, here at least. */
  async #round(): Promise<boolean> {
    const { clock, courtesy, signal } = this.#parts
    try {
      if (this.#seen === null) await this.#waitForOthers()
      if (this.#isWoken || clock.now() >= this.#lookAt) {
        this.#isWoken = false
        if (!(await this.#look())) return false
      }
      const startedMs = performance.now()
      if (await this.#send()) {
        // From when its last letter was sent its outcomes are waited for.
        if (this.#isCanaryOut) this.wake()
        await courtesy.rest(performance.now() - startedMs, signal)
      } else if (this.#lanes.areDone && this.#redrive.state === 'running')
        return await this.#decide({ state: 'done', note: null })
      else await this.#wait(this.#nextAt())
      this.#tries = 0
      return true
    } catch (error) {
      return this.#onTrouble(error)
    }
  }

  get #redrive(): StoredRedrive {
    if (this.#seen === null) throw new Error(`redrive ${this.#id} was not looked at`)
    return this.#seen
  }

  /** Whoever was at it before may have batches at hand. */
  #waitForOthers(): Promise<void> {
    return this.#parts.db.transaction('redrive.take', async (tx) => {
      const redrive = await readRedrive(tx, this.#id)
      if (redrive !== null) await holdLanes(tx, redrive.number)
    })
  }

  /** Reads the redrive anew, and what became of its letters; false when it is not to go on. */
  async #look(): Promise<boolean> {
    const { db, clock, owner } = this.#parts
    this.#lookAt = later(clock.now(), LOOK_US)
    const looked = await db.session('redrive.look', async (session) => {
      const redrive = await readRedrive(session, this.#id)
      return redrive === null ? null : { redrive, ...(await readProgress(session, redrive)) }
    })
    if (looked === null || looked.redrive.owner !== owner) return false
    this.#seen = looked.redrive
    // Another server may have had it for a while, and what a batch did is not always heard of.
    this.#lanes.learn(looked.lanes)
    if (!isWorking(looked.redrive.state)) return false
    this.#pace.change(looked.redrive.terms.rate)
    await this.#noteProgress(looked.counts)
    const verdict = (await this.#stopVerdict(looked.counts)) ?? (await this.#canaryVerdict(looked.counts))
    return verdict === null || this.#decide(verdict)
  }

  /** For whoever looks at runs. */
  async #noteProgress({ sent: done, skipped, failed }: RedriveCounts): Promise<void> {
    const { db, owner } = this.#parts
    const progress = { done, skipped, failed, rateNow: this.#rate.perSecond }
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

  /** Writes what only the server at it decides. */
  async #note(change: { readonly recent?: string; readonly canarySentAt?: Instant }): Promise<void> {
    const { db, owner } = this.#parts
    await db.transaction('redrive.note', async (tx) => {
      const redrive = await lockRedrive(tx, this.#id)
      if (redrive?.owner === owner) await writeRedrive(tx, { ...redrive, ...change })
    })
    this.#seen = { ...this.#redrive, ...change }
  }

  /** False when it does not go on here. */
  async #decide(verdict: Verdict): Promise<boolean> {
    const { db, clock, log, owner, onEnded } = this.#parts
    const isDecided = await inOffice(db, clock, 'redrive.decide', (work) =>
      decide(work, this.#id, owner, verdict),
    )
    if (!isDecided) {
      this.wake()
      return true
    }
    log.info({ redrive: this.#id, state: verdict.state, note: verdict.note }, 'redrive changed its state')
    if (verdict.state === 'running') {
      this.wake()
      return true
    }
    if (verdict.state !== 'paused') onEnded(verdict.state)
    return false
  }

  /** Whether the last letter of the canary was sent. Looks before that would let lanes try in vain that wait for others. */
  get #isCanaryOut(): boolean {
    const { state, terms } = this.#redrive
    return state === 'canary' && terms.canary !== null && leftOfCanary(terms.canary, this.#lanes.sent) <= 0
  }

  /** Sends what may be sent now; false when that is nothing. */
  async #send(): Promise<boolean> {
    const { state, terms } = this.#redrive
    const isCanary = state === 'canary' && terms.canary !== null
    let left = isCanary ? leftOfCanary(terms.canary, this.#lanes.sent) : Number.POSITIVE_INFINITY
    const { db, courtesy } = this.#parts
    const atOnce = isCanary || courtesy.isLive ? 1 : AT_ONCE[db.dialect]
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
    if (result.outcome === 'halted') this.wake()
    else this.#count(lane, result)
  }

  #count(lane: CountedLane, { sent, skipped, failed, terms }: BatchDone): void {
    const step = { sent, skipped, failed }
    this.#lanes.count(lane, step)
    this.#pace.sent(placeOf(lane), sent)
    this.#pace.change(terms.rate)
    this.#rate.add(sent)
    this.#parts.onStep({ action: this.#redrive.action, ...step })
  }

  /** When there may be something to do again. */
  #nextAt(): Instant {
    const now = this.#parts.clock.now()
    const tick = later(now, TICK_US)
    const due = this.#lanes.open().map((lane) => this.#pace.nextAt(placeOf(lane)))
    const [soonest] = this.#redrive.state === 'running' ? due.sort((a, b) => (a < b ? -1 : 1)) : []
    const send = soonest === undefined ? this.#lookAt : soonest > tick ? soonest : tick
    return send < this.#lookAt ? send : this.#lookAt
  }

  async #wait(until: Instant): Promise<void> {
    if (this.#isWoken || this.#parts.signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const alarm = this.#parts.clock.alarm(until, resolve)
    this.#wakeUp = resolve
    for (const quiet of this.#onQuiet) quiet()
    await promise
    alarm.cancel()
    this.#wakeUp = null
  }

  /** What passes is tried again; what does not pauses the redrive. */
  async #onTrouble(error: unknown): Promise<boolean> {
    const { log, clock } = this.#parts
    if (isObstacle(error)) return this.#decide({ state: 'paused', note: wordsOf(error) })
    log.warn({ err: error, redrive: this.#id }, 'redrive was held up; it tries again')
    this.#tries++
    if (this.#tries >= MOST_TRIES && !isPassing(error)) {
      const words = error instanceof Error ? error.message : String(error)
      return this.#decide({ state: 'paused', note: `it failed ${MOST_TRIES} times on this server: ${words}` })
    }
    this.#lookAt = later(clock.now(), TRY_AGAIN_US)
    await this.#wait(this.#lookAt)
    this.wake()
    return true
  }
}
