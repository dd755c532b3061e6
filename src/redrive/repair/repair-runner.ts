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
// Types alone; by these the code of the process is part of the build too.
import type { RepairAnswer } from './repair-process.ts'
import type { RepairedLetter, RepairRequest, RepairTerms } from './repair-thread.ts'

const START_MS = 30_000
/** The process times its letters itself; one that says nothing for so long cannot even do that. */
const SILENT_MS = 30_000

/** What became of the letters of a request, as far as it is known. */
export interface RunEnd {
  /** Of the first letters, in their order. */
  readonly done: readonly RepairedLetter[]
  /** Why the process had to be ended, in words for the letter at fault; null: it was not. */
  readonly broke: string | null
}

interface Run {
  readonly done: RepairedLetter[]
  readonly end: PromiseWithResolvers<RunEnd>
  readonly timer: NodeJS.Timeout
}

/** One process, from its start to its end; given one request at a time. */
export class RepairRunner {
  /** Rejects when it cannot be started. */
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #starting = Promise.withResolvers<void>()
  readonly #exited = Promise.withResolvers<void>()
  readonly #startTimer: NodeJS.Timeout
  /** The version of the recipe that it was given last. */
  #recipe = ''
  #run: Run | null = null
  #isGone = false

  constructor() {
    // From the sources it is TypeScript, in the package JavaScript.
    const code = new URL(`./repair-process${extname(import.meta.filename)}`, import.meta.url)
    this.#child = fork(code, {
      // What the server is run with is not meant for it.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    // A program that has nothing else to do may end; the timers of letters keep it until these are done.
    this.#child.unref()
    this.#child.channel?.unref()
    this.ready = this.#starting.promise
    // Whoever needs it waits for it.
    this.ready.catch(() => {})
    // As the process sends them.
    this.#child.on('message', (answer) => this.#told(answer as RepairAnswer))
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

  /** Whether it can no longer be given letters. */
  get isGone(): boolean {
    return this.#isGone
  }

  /** Repairs letters, when those before are done; rejects when the process is ended meanwhile. */
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

  /** Ends it, whatever it does; resolves when it is over. */
  async end(): Promise<void> {
    this.#leave(failure('service_stopping'))
    this.#endRun()?.end.reject(failure('service_stopping'))
    // Without an id it never began.
    if (this.#child.pid === undefined) return
    this.#child.ref()
    this.#child.kill('SIGKILL')
    await this.#exited.promise
  }

  #told(answer: RepairAnswer): void {
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

  #kill(said: string): void {
    this.#over(said)
    this.#child.kill('SIGKILL')
  }

  /** It cannot be used any more; `said` is what that means for the letter that is under way. */
  #over(said: string, error = new Error(said)): void {
    this.#leave(error)
    this.#settle(said)
  }

  #settle(broke: string | null): void {
    const run = this.#endRun()
    run?.end.resolve({ done: run.done, broke })
  }

  /** `error` is for whoever still waits for it to start. */
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
