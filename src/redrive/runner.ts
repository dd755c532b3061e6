/**
 * The redrives that this server is at. Every second it looks for some that nobody is at, because their server ended or lost the
 * store, and goes on with them.
 */
import { type Alarm, type Clock, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import type { SourceName } from '../letters/letter.ts'
import type { LetterSource } from '../letters/source.ts'
import { Courtesy } from '../work/courtesy.ts'
import { Drive, type DriveParts, type Step } from './drive.ts'
import { holdLanes } from './lanes.ts'
import { LEASE_US } from './lease.ts'
import { isWorking, type RedriveNumber, type RedriveState } from './redrive.ts'
import type { Repairer } from './repair/repairer.ts'
import { openRedrives, readRedriveByNumber, type StoredRedrive, takeRedrive } from './rows.ts'

export interface RunnerOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly repairer: Repairer
}

/** Who wants to hear of what this server does. */
export interface RunnerListener {
  step(step: Step): void
  ended(state: RedriveState): void
  resumed(): void
}

const LOOK_US = 1_000_000n
/** Redrives that one server is at; what is more waits, or is another's. */
const MOST_DRIVES = 20
const CHANNEL = 'bartleby_redrives'

export class RedriveRunner {
  /** Unique among all running servers. */
  readonly owner = crypto.randomUUID()
  readonly #options: RunnerOptions
  readonly #listeners = new Set<Partial<RunnerListener>>()
  readonly #drives = new Map<RedriveNumber, { readonly drive: Drive; readonly over: Promise<void> }>()
  readonly #parts: DriveParts
  #alarm: Alarm | undefined
  #looking: Promise<void> | undefined
  #isStopped = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#parts = {
      ...options,
      owner: this.owner,
      courtesy: new Courtesy(options.db),
      onStep: (step) => {
        for (const listener of this.#listeners) listener.step?.(step)
      },
      onEnded: (state) => this.tellEnded(state),
    }
  }

  /** Tells `listener` of what it has a word for. */
  listen(listener: Partial<RunnerListener>): void {
    this.#listeners.add(listener)
  }

  /** A redrive ended: its listeners are told. */
  tellEnded(state: RedriveState): void {
    for (const listener of this.#listeners) listener.ended?.(state)
  }

  /** Begins to look for redrives that nobody is at. */
  start(): void {
    const { db, log } = this.#options
    db.listen(CHANNEL, () => this.#wakeAll()).catch((error: unknown) =>
      log.warn({ err: error }, 'changes of redrives are not heard at once; they are looked for every second'),
    )
    this.#tick()
  }

  /** Ends after the batches at hand; what is left is another server's, or this one's at its next start. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#alarm?.cancel()
    for (const { drive } of this.#drives.values()) drive.stop()
    await this.#looking
    await Promise.all([...this.#drives.values()].map(({ over }) => over))
  }

  /** Goes on with a redrive that is this server's. */
  begin(redrive: StoredRedrive): void {
    const known = this.#drives.get(redrive.number)
    if (known !== undefined) {
      // It is about to end what it was at: the look that follows takes this one up.
      known.drive.wake()
      void known.over.then(() => this.#again(redrive.number))
      return
    }
    if (this.#isStopped) return
    const drive = new Drive(this.#parts, redrive)
    const over = drive
      .run()
      .catch((error: unknown) =>
        this.#options.log.error(
          { err: error, redrive: redrive.id },
          'redrive broke off; its lease ends by itself',
        ),
      )
      .finally(() => this.#drives.delete(redrive.number))
    this.#drives.set(redrive.number, { drive, over })
  }

  /** Something about a redrive changed: whoever is at it looks at once, here and elsewhere. */
  changed(): void {
    this.#wakeAll()
    this.#options.db.notify(CHANNEL, '').catch(() => {})
  }

  /** Resolves when nothing is left to do before the clock moves. */
  async settle(): Promise<void> {
    await this.#look()
    await Promise.all(
      [...this.#drives.values()].map(({ drive, over }) => Promise.race([drive.quiet(), over])),
    )
  }

  #wakeAll(): void {
    for (const { drive } of this.#drives.values()) drive.wake()
  }

  #tick(): void {
    const { clock } = this.#options
    void this.#look().finally(() => {
      if (!this.#isStopped) this.#alarm = clock.alarm(later(clock.now(), LOOK_US), () => this.#tick())
    })
  }

  #look(): Promise<void> {
    this.#looking ??= this.#takeUp()
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'redrives were not looked for; the next round tries again'),
      )
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  /** Takes up what nobody is at. */
  async #takeUp(): Promise<void> {
    const { db, clock, log } = this.#options
    const open = await db.session('redrive.open', (session) => openRedrives(session))
    for (const redrive of open) {
      if (this.#isStopped || this.#drives.size >= MOST_DRIVES) return
      const isLeft = redrive.owner === null || redrive.ownedUntil === null || redrive.ownedUntil < clock.now()
      if (!isWorking(redrive.state) || !isLeft || this.#drives.has(redrive.number)) continue
      const taken = await this.#take(redrive.number)
      if (taken === null) continue
      log.info({ redrive: redrive.id }, 'redrive taken up')
      if (taken.resumed > redrive.resumed) for (const listener of this.#listeners) listener.resumed?.()
      this.begin(taken)
    }
  }

  /** Makes it this server's, once the batches of whoever was at it are over. */
  #take(number: RedriveNumber): Promise<StoredRedrive | null> {
    const { db, clock } = this.#options
    return db.transaction('redrive.take', async (tx) => {
      const now = clock.now()
      const lease = { owner: this.owner, until: later(now, LEASE_US) }
      if (!(await takeRedrive(tx, number, lease, now))) return null
      await holdLanes(tx, number)
      return readRedriveByNumber(tx, number)
    })
  }

  /** A redrive that was paused and resumed while its drive was ending. */
  async #again(number: RedriveNumber): Promise<void> {
    const { db, log } = this.#options
    try {
      const redrive = await db.session('redrive.again', (session) => readRedriveByNumber(session, number))
      if (redrive?.owner === this.owner && isWorking(redrive.state)) this.begin(redrive)
    } catch (error) {
      log.warn({ err: error }, 'a redrive was not gone on with; its lease ends by itself')
    }
  }
}
