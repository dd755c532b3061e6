/**
 * Verify, run by a server on its own store: one run at a time, in the background; the last result is remembered.
 *
 *   never ──► running ──► done     every promise was checked, kept or not
 *                └─────► failed   not checked to the end, or the office stopped
 *
 * Both ends can start again. Checks read in bounded steps: on SQLite, where a step blocks the server, 10 ms each; only sorts take longer (57
 * and 51 ms with 200,000 letters). A store in memory has one connection, so calls wait for the whole run, a second or so.
 */
import type { Clock, Instant } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Service } from '../core/rounds.ts'
import type { Database } from '../store/database.ts'
import { StoreTooNew } from '../store/migrations.ts'
import type { VerifyStanding } from './shapes.ts'
import type { InvariantReport } from './verify.ts'

interface VerifyRunOptions {
  /** Lends a database for the duration of the work. */
  readonly lend: <T>(work: (db: Database) => Promise<T>) => Promise<T>
  readonly clock: Clock
  readonly log: Log
}

const SAMPLES = 5
/** Source ids may be long. */
const MAX_SAMPLE_CHARACTERS = 500

const NEVER: VerifyStanding = {
  state: 'never',
  startedAt: null,
  finishedAt: null,
  progress: null,
  error: null,
  checks: [],
}

const BEGINNING = { label: 'looking how much there is', done: 0, expected: 0 }

export class VerifyRun implements Service {
  readonly name = 'verify'
  readonly #options: VerifyRunOptions
  readonly #stop = new AbortController()
  #standing = NEVER
  #running: Promise<void> | null = null

  constructor(options: VerifyRunOptions) {
    this.#options = options
  }

  look(): VerifyStanding {
    return this.#standing
  }

  /** Does nothing while one is under way. */
  begin(): void {
    if (this.#running !== null || this.#stop.signal.aborted) return
    const startedAt = this.#options.clock.now()
    this.#standing = { ...NEVER, state: 'running', startedAt, progress: BEGINNING }
    this.#running = this.#run(startedAt).finally(() => {
      this.#running = null
    })
  }

  /** Ends the current run and starts no more. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the server is stopping'))
    await this.#running
  }

  /** Never fails: trouble is its result. */
  async #run(startedAt: Instant): Promise<void> {
    const { lend, clock, log } = this.#options
    const finished = () => ({ ...NEVER, startedAt, finishedAt: clock.now() })
    try {
      // Loaded on use: most servers never check.
      const { INVARIANTS, verifyStore } = await import('./verify.ts')
      const titles = new Map(INVARIANTS.map(({ id, promise }) => [id, `${id}: ${promise}`]))
      const { clean, invariants } = await lend((db) =>
        verifyStore(db, {
          clock,
          limit: SAMPLES,
          signal: this.#stop.signal,
          onProgress: ({ invariant, done, expected }) => {
            const label = titles.get(invariant) ?? invariant
            this.#standing = { ...this.#standing, progress: { label, done, expected } }
          },
        }),
      )
      const broken = invariants.filter((each) => each.broken > 0).map(({ invariant }) => invariant)
      if (!clean) log.error({ broken }, 'the store breaks its promises; `bartleby verify` shows the rows')
      this.#standing = { ...finished(), state: 'done', checks: invariants.map(checkOf) }
    } catch (error) {
      if (!this.#stop.signal.aborted) log.error({ err: error }, 'the store could not be verified')
      this.#standing = { ...finished(), state: 'failed', error: reasonOf(error) }
    }
  }
}

const checkOf = ({
  invariant,
  promise,
  broken,
  violations,
}: InvariantReport): VerifyStanding['checks'][number] => ({
  id: invariant,
  title: promise,
  holds: broken === 0,
  findings: broken,
  samples: violations.slice(0, SAMPLES).map(({ what, row }) => {
    const fields = Object.entries(row).map(([name, value]) => `${name}=${value}`)
    return shortened(fields.length === 0 ? what : `${what} (${fields.join(', ')})`)
  }),
})

const shortened = (text: string): string =>
  (text.length > MAX_SAMPLE_CHARACTERS ? `${text.slice(0, MAX_SAMPLE_CHARACTERS)}…` : text).toWellFormed()

/** Errors of the store are for the log. A server of another version may have migrated it meanwhile. */
const reasonOf = (error: unknown): string =>
  error instanceof StoreTooNew
    ? error.message
    : 'the store could not be read to the end; the log of the server says why. Try again once it answers'
