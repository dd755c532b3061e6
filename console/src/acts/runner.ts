/**
 * Does one thing to many letters from this tab: walks their lists, the newest first, acts on some at a time, and keeps the numbers. What
 * arrives meanwhile is newer than where the walk is, so no letter has its turn twice, and never more are touched than were planned.
 */
import { CallFailure, reasonOf } from '../api/call.ts'
import type { LetterFilter, LetterItem, LetterKey, Page } from '../api/types.ts'
import { type Run, remainingOf } from './run.ts'

/** What a run needs of the world. */
export interface RunWorld {
  page(filter: LetterFilter, token: string | null): Promise<Page<LetterItem>>
  /** Once for a letter of a run, however often it is asked for. */
  perform(run: Run, letter: LetterKey): Promise<unknown>
  sleep(ms: number): Promise<void>
  nowMs(): number
}

/** As many letters are acted on at once. */
const AT_ONCE = 4
/** As many of those sent are remembered, to ask what became of them. */
export const MOST_ASKED = 200
const KEPT_FAILURES = 20
/** Something is wrong with more than these letters. */
const FAILURES_IN_A_ROW = 20
const TRIES = 3
const FIRST_PAUSE_MS = 500
const BUSY_TRIES = 40
const BUSY_PAUSE_MS = 250

/** The letter has moved on by itself. */
const MOVED_ON: readonly string[] = ['letter_status_wrong', 'letter_unknown']
/** Others have to go first: letters of one key leave in the order in which they came, while the walk goes backwards. */
const LATER: readonly string[] = ['letter_not_next', 'letter_service_busy']

type Attempt = 'settled' | 'later' | 'stopped'

export class Runner {
  readonly #world: RunWorld
  readonly #onChange: (run: Run) => void
  readonly #sent: LetterKey[] = []
  #run: Run
  #isStopped = false
  /** Resolved when the run goes on; null while it does. */
  #pause: PromiseWithResolvers<void> | null = null
  #inARow = 0
  #nextAtMs = 0

  constructor(run: Run, world: RunWorld, onChange: (run: Run) => void) {
    this.#run = run
    this.#world = world
    this.#onChange = onChange
  }

  get run(): Run {
    return this.#run
  }

  /** The first letters that were sent. */
  get sent(): readonly LetterKey[] {
    return this.#sent
  }

  /** Ends when no letter is left, or it was cancelled. */
  async start(): Promise<void> {
    const later: LetterKey[] = []
    const letters = this.#letters()
    let taking: Promise<unknown> = Promise.resolve()
    const take = (): Promise<LetterKey | null> => {
      const taken = taking.then(async () => {
        const { value, done } = await letters.next()
        return done === true ? null : value
      })
      taking = taken.catch(() => null)
      return taken
    }
    const work = async () => {
      while (await this.#mayGoOn()) {
        const letter = await take()
        if (letter === null) return
        if ((await this.#attempt(letter)) === 'later') later.push(letter)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    await this.#takeUp(later)
    if (!this.#isStopped) {
      // The end of the list is known now: what was planned and not met any more has moved on.
      this.#change({ skipped: this.#run.skipped + remainingOf(this.#run) })
    }
    this.#change({
      state: this.#isStopped ? 'cancelled' : 'done',
      endedAt: new Date(this.#world.nowMs()).toISOString(),
    })
  }

  /** Letters that are being acted on still finish. */
  pause(trouble: string | null = null): void {
    if (this.#isStopped || this.#pause !== null) return
    this.#pause = Promise.withResolvers()
    this.#change({ state: 'paused', trouble })
  }

  goOn(): void {
    if (this.#pause === null) return
    this.#inARow = 0
    this.#change({ state: 'running', trouble: null })
    this.#pause.resolve()
    this.#pause = null
  }

  cancel(): void {
    this.#isStopped = true
    this.#pause?.resolve()
    this.#pause = null
  }

  /** The letters that were planned, as far as they are still there. */
  async *#letters(): AsyncGenerator<LetterKey, void, undefined> {
    const { keys, walks, planned } = this.#run
    if (keys !== null) {
      yield* keys
      return
    }
    let given = 0
    for (const filter of walks) {
      let token: string | null = null
      do {
        const page: Page<LetterItem> | null = await this.#page(filter, token)
        if (page === null) return
        for (const letter of page.items) {
          if (given === planned) return
          given++
          yield letter
        }
        token = page.continuationToken
      } while (token !== null)
    }
  }

  /** null when it was cancelled before the list could be read. */
  async #page(filter: LetterFilter, token: string | null): Promise<Page<LetterItem> | null> {
    for (let tries = 1; await this.#mayGoOn(); tries++) {
      try {
        return await this.#world.page(filter, token)
      } catch (error) {
        if (tries % TRIES === 0) this.pause(reasonOf(error))
        else await this.#world.sleep(FIRST_PAUSE_MS * 2 ** (tries % TRIES))
      }
    }
    return null
  }

  /** Waits while it is paused, and for its turn where the rate is limited; false when it is over. */
  async #mayGoOn(): Promise<boolean> {
    while (this.#pause !== null) await this.#pause.promise
    return !this.#isStopped
  }

  async #waitForTurn(): Promise<void> {
    const { perSecond } = this.#run
    if (perSecond === null) return
    const nowMs = this.#world.nowMs()
    const atMs = Math.max(nowMs, this.#nextAtMs)
    this.#nextAtMs = atMs + 1_000 / perSecond
    if (atMs > nowMs) await this.#world.sleep(atMs - nowMs)
  }

  async #attempt(letter: LetterKey): Promise<Attempt> {
    await this.#waitForTurn()
    for (let tries = 1; await this.#mayGoOn(); tries++) {
      try {
        await this.#world.perform(this.#run, letter)
        this.#settleDone(letter)
        return 'settled'
      } catch (error) {
        const code = error instanceof CallFailure ? error.code : ''
        const status = error instanceof CallFailure ? error.status : 500
        if (MOVED_ON.includes(code)) {
          this.#change({ skipped: this.#run.skipped + 1 })
          return 'settled'
        }
        if (LATER.includes(code)) return 'later'
        const passes = status === 0 || status === 429 || status >= 500
        if (passes && tries % TRIES !== 0) {
          await this.#world.sleep(FIRST_PAUSE_MS * 2 ** (tries % TRIES))
          continue
        }
        // Without a server or a session no other letter would fare better; this one waits with the run.
        if (status === 0 || status === 401 || status === 403) {
          this.pause(reasonOf(error))
          continue
        }
        this.#settleFailed(letter, reasonOf(error))
        return 'settled'
      }
    }
    return 'stopped'
  }

  /** One at a time, the oldest first: as letters of one key have to leave. */
  async #takeUp(later: LetterKey[]): Promise<void> {
    for (let letter = later.pop(); letter !== undefined && !this.#isStopped; letter = later.pop()) {
      let attempt = await this.#attempt(letter)
      for (let tries = 1; attempt === 'later' && tries < BUSY_TRIES && !this.#isStopped; tries++) {
        await this.#world.sleep(BUSY_PAUSE_MS)
        attempt = await this.#attempt(letter)
      }
      if (attempt === 'later')
        this.#settleFailed(letter, 'Others of its key have to leave before it, and did not.')
    }
  }

  #settleDone(letter: LetterKey): void {
    this.#inARow = 0
    if (this.#sent.length < MOST_ASKED) this.#sent.push({ engine: letter.engine, rowKey: letter.rowKey })
    this.#change({ done: this.#run.done + 1 })
  }

  #settleFailed({ engine, rowKey }: LetterKey, reason: string): void {
    const { failures, failed } = this.#run
    this.#change({
      failed: failed + 1,
      failures: failures.length < KEPT_FAILURES ? [...failures, { engine, rowKey, reason }] : failures,
    })
    if (++this.#inARow === FAILURES_IN_A_ROW) {
      this.pause(`${FAILURES_IN_A_ROW} letters failed in a row, the last because: ${reason}`)
    }
  }

  #change(change: Partial<Run>): void {
    this.#run = { ...this.#run, ...change }
    this.#onChange(this.#run)
  }
}
