/**
 * The process of repairs, seen from the server.
 *
 *   starting ──► ready ◄──► running
 *      └───────────┴──────────┴────► gone    out of time or memory, broken, or no longer needed
 */
import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { failure } from '../../core/errors.ts'
import type { LetterContent } from './apply-recipe.ts'
import { type Recipe, showRecipe } from './recipe.ts'
import { OUT_OF_MEMORY, TOO_LONG, TOO_MUCH_MEMORY } from './repair-bounds.ts'
// Types alone; the import makes the process's code part of the build.
import type { RepairAnswer } from './repair-process.ts'
import type { RepairedLetter, RepairRequest, RepairTerms } from './repair-thread.ts'

const START_MS = 30_000
/** The process times its letters; one silent for so long cannot even do that. */
const SILENT_MS = 30_000

/** Result of a request, as far as it is known. */
export interface RunEnd {
  /** For the first letters, in order. */
  readonly done: readonly RepairedLetter[]
  /** Why the process had to be ended, in words for the letter at fault. */
  readonly broke: string | null
}

interface Run {
  readonly done: RepairedLetter[]
  readonly end: PromiseWithResolvers<RunEnd>
  readonly timer: NodeJS.Timeout
}

/** One process; it takes one request at a time. */
export class RepairRunner {
  /** Rejects when it cannot be started. */
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #starting = Promise.withResolvers<void>()
  readonly #exited = Promise.withResolvers<void>()
  readonly #startTimer: NodeJS.Timeout
  #recipe = ''
  #run: Run | null = null
  #isGone = false

  constructor() {
    // TypeScript in the sources, JavaScript in the package.
    const code = new URL(`./repair-process${extname(import.meta.filename)}`, import.meta.url)
    this.#child = fork(code, {
      // The server's own options are not for it.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    // It keeps no program alive; the timers of letters do, until these are done.
    this.#child.unref()
    this.#child.channel?.unref()
    this.ready = this.#starting.promise
    // Awaited by whoever needs it.
    this.ready.catch(() => {})
    // The cast holds: only the process sends.
    this.#child.on('message', (answer) => this.#onAnswer(answer as RepairAnswer))
    this.#child.on('error', (error) => this.#over(error.message, error))
    this.#child.once('exit', (exitCode, signal) => {
      const isMemory = exitCode === OUT_OF_MEMORY || signal !== null
      const error = new Error(`the process of repairs ended with ${signal ?? exitCode}`)
      this.#over(isMemory ? TOO_MUCH_MEMORY : error.message, error)
      this.#exited.resolve()
    })
    const tooSlow = `the process of repairs did not start within ${START_MS / 1_000} seconds`
    this.#startTimer = setTimeout(() => this.#kill(tooSlow), START_MS)
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Repairs letters after those before; rejects when the process is ended meanwhile. */
  run(recipe: Recipe, letters: readonly LetterContent[], terms: RepairTerms): Promise<RunEnd> {
    const end = Promise.withResolvers<RunEnd>()
    this.#run = { done: [], end, timer: setTimeout(() => this.#kill(TOO_LONG), SILENT_MS) }
    const isKnown = recipe.version === this.#recipe
    this.#recipe = recipe.version
    const request: RepairRequest = {
      recipe: isKnown ? null : JSON.stringify(showRecipe(recipe)),
      letters,
      ...terms,
    }
    this.#child.send(request, (error) => {
      if (error !== null) this.#over(`the repair could not be run: ${error.message}`)
    })
    return end.promise
  }

  async end(): Promise<void> {
    this.#leave(failure('service_stopping'))
    this.#endRun()?.end.reject(failure('service_stopping'))
    // Without an id it never began.
    if (this.#child.pid === undefined) return
    this.#child.ref()
    this.#child.kill('SIGKILL')
    await this.#exited.promise
  }

  #onAnswer(answer: RepairAnswer): void {
    switch (answer.kind) {
      case 'ready':
        clearTimeout(this.#startTimer)
        this.#starting.resolve()
        return
      case 'letter':
        this.#run?.timer.refresh()
        this.#run?.done.push(answer.letter)
        return
      case 'end':
        this.#settle(null)
        return
      case 'too long':
        this.#over(TOO_LONG)
    }
  }

  #kill(reason: string): void {
    this.#over(reason)
    this.#child.kill('SIGKILL')
  }

  /** It is of no more use; `reason` is for the letter under way. */
  #over(reason: string, error = new Error(reason)): void {
    this.#leave(error)
    this.#settle(reason)
  }

  #settle(broke: string | null): void {
    const run = this.#endRun()
    run?.end.resolve({ done: run.done, broke })
  }

  /** `error` is for whoever still waits for its start. */
  #leave(error: Error): void {
    this.#isGone = true
    clearTimeout(this.#startTimer)
    this.#starting.reject(error)
  }

  #endRun(): Run | null {
    const run = this.#run
    clearTimeout(run?.timer)
    this.#run = null
    return run
  }
}
