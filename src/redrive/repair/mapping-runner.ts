/**
 * The process of mappings, seen from the server.
 *
 *   starting ──► ready ◄──► running
 *      └───────────┴──────────┴────► gone    out of time or memory, broken, or no longer needed
 */
import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { failure } from '../../core/errors.ts'
// Types alone; by these the code of the process and its thread is part of the build too.
import type { OUT_OF_MEMORY } from './mapping-process.ts'
import type { MappingAnswer, MappingRequest } from './mapping-worker.ts'

const START_MS = 30_000
/** For one letter. */
const MAPPING_MS = 1_000

/** As the process says it. */
const OUT_OF_MEMORY_CODE: typeof OUT_OF_MEMORY = 12
const TOO_MUCH_MEMORY = 'the mapping used too much memory'
/** What is said of a letter whose time is up. */
export const TOO_LONG = `the mapping took longer than ${MAPPING_MS / 1_000} s`

/** What became of one letter. */
export type MappingOutcome =
  /** null: as it was. */
  | { readonly kind: 'mapped'; readonly payload: Uint8Array | null }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'too long' }

interface Run {
  readonly settle: (outcome: MappingOutcome) => void
  readonly fail: (error: unknown) => void
  readonly timer: NodeJS.Timeout
}

/** One process, from its start to its end; given one letter at a time. */
export class MappingRunner {
  /** Rejects when it cannot be started. */
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #starting = Promise.withResolvers<void>()
  readonly #exited = Promise.withResolvers<void>()
  readonly #startTimer: NodeJS.Timeout
  #run: Run | null = null
  #isGone = false

  constructor() {
    // From the sources it is TypeScript, in the package JavaScript.
    const code = new URL(`./mapping-process${extname(import.meta.filename)}`, import.meta.url)
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
    this.#child.on('message', (answer) => this.#told(answer as MappingAnswer))
    this.#child.on('error', (error) => this.#over(error, error.message))
    this.#child.once('exit', (exitCode, signal) => {
      const isMemory = exitCode === OUT_OF_MEMORY_CODE || signal !== null
      const error = new Error(`the process of mappings ended with ${signal ?? exitCode}`)
      this.#over(error, isMemory ? TOO_MUCH_MEMORY : error.message)
      this.#exited.resolve()
    })
    this.#startTimer = setTimeout(() => {
      const error = new Error(`the process of mappings did not start within ${START_MS / 1_000} seconds`)
      this.#over(error, error.message)
      this.#child.kill('SIGKILL')
    }, START_MS)
  }

  /** Whether it can no longer be given a letter. */
  get isGone(): boolean {
    return this.#isGone
  }

  /** Maps one letter, when the one before is done; rejects when the process is ended meanwhile. */
  run(mapping: string, payload: Uint8Array): Promise<MappingOutcome> {
    return new Promise((settle, fail) => {
      this.#run = { settle, fail, timer: setTimeout(() => this.#timeIsUp(), MAPPING_MS) }
      const request: MappingRequest = { mapping, payload }
      this.#child.send(request, (error) => {
        if (error !== null) this.#over(error, `the mapping could not be run: ${error.message}`)
      })
    })
  }

  /** Ends it, whatever it does; resolves when it is over. */
  async end(): Promise<void> {
    this.#leave()
    this.#starting.reject(failure('service_stopping'))
    this.#endRun()?.fail(failure('service_stopping'))
    // Without an id it never began.
    if (this.#child.pid === undefined) return
    this.#child.ref()
    this.#child.kill('SIGKILL')
    await this.#exited.promise
  }

  #told(answer: MappingAnswer): void {
    if (answer.kind === 'ready') {
      clearTimeout(this.#startTimer)
      this.#starting.resolve()
    } else this.#endRun()?.settle(answer)
  }

  /** A server that was busy itself may find the answer beside the alarm: it is read first. */
  #timeIsUp(): void {
    const late = this.#run
    setImmediate(() => {
      if (this.#run !== late || late === null) return
      this.#leave()
      this.#endRun()?.settle({ kind: 'too long' })
      this.#child.kill('SIGKILL')
    })
  }

  /** It cannot be used any more; `said` is what that means for the letter that is under way. */
  #over(error: Error, said: string): void {
    this.#leave()
    this.#starting.reject(error)
    this.#endRun()?.settle({ kind: 'refused', reason: said })
  }

  #leave(): void {
    this.#isGone = true
    clearTimeout(this.#startTimer)
  }

  #endRun(): Run | null {
    const run = this.#run
    clearTimeout(run?.timer)
    this.#run = null
    return run
  }
}
