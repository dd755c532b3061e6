/** The threads of processors: a few, started when they are needed, each with one run at a time. Runs wait in their order. */
import type { Log } from '../../core/log.ts'
import { describeError } from '../../core/thrown.ts'
import type { Decision } from '../ports.ts'
import type { ModuleExport } from './calls.ts'
import { type RunRequest, Thread, type ThreadListener } from './thread.ts'

/** Services are resolved one event at a time, each for itself: more than two rarely meet, and threads cost memory. */
const MOST_THREADS = 2

const CLOSED: Decision = { action: 'failed', message: 'the processors were closed' }

interface Waiting {
  readonly request: RunRequest
  readonly decide: (decision: Decision | Promise<Decision>) => void
}

export class Threads implements ThreadListener {
  readonly #entries: readonly ModuleExport[]
  readonly #log: Log
  readonly #threads = new Set<Thread>()
  /** Those that are of no use any more and have not ended yet. */
  readonly #ending = new Set<Thread>()
  readonly #ready: Thread[] = []
  readonly #waiting: Waiting[] = []
  #isClosed = false

  constructor(entries: readonly ModuleExport[], log: Log) {
    this.#entries = entries
    this.#log = log
  }

  /** Starts the first thread; gives which entries have a `when`. Rejects with a ConfigError when they cannot be loaded. */
  start(): Promise<readonly boolean[]> {
    return this.#start().loaded
  }

  /** Runs it as soon as a thread is free. The time for it begins then. */
  run(request: RunRequest): Promise<Decision> {
    if (this.#isClosed) return Promise.resolve(CLOSED)
    return new Promise((decide) => {
      this.#waiting.push({ request, decide })
      this.#next()
    })
  }

  /** Ends all threads, whatever they do. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { decide } of this.#waiting.splice(0)) decide(CLOSED)
    await Promise.all([...this.#threads, ...this.#ending].map((thread) => thread.end()))
  }

  ready(thread: Thread): void {
    this.#ready.push(thread)
    this.#next()
  }

  gone(thread: Thread): void {
    this.#threads.delete(thread)
    const place = this.#ready.indexOf(thread)
    if (place >= 0) this.#ready.splice(place, 1)
    this.#ending.add(thread)
    void thread.exited.then(() => this.#ending.delete(thread))
    thread.loaded.then(
      () => this.#next(),
      (error: unknown) => {
        // They were loaded once, so somebody has changed them since. One run learns of it, and the next one tries again.
        this.#waiting.shift()?.decide({ action: 'failed', message: describeError(error).errorMessage })
        this.#next()
      },
    )
  }

  #next(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#ready.shift()
      if (thread === undefined) {
        if (this.#threads.size < MOST_THREADS && !this.#isClosed) this.#start()
        return
      }
      const next = this.#waiting.shift()
      next?.decide(thread.run(next.request))
    }
  }

  #start(): Thread {
    const said = (text: string): void => this.#log.info({ text }, 'a processor writes while it is loaded')
    const thread = new Thread(this.#entries, this, said)
    this.#threads.add(thread)
    return thread
  }
}
