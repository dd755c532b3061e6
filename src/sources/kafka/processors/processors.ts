/**
 * The processors of a configuration, and which of them an event is for. They run in a few threads, started on demand, with one run at a
 * time each; runs wait in order. A dry run is the same call.
 */
import { type Log, silentLog } from '../../../core/log.ts'
import { describeError } from '../../../core/thrown.ts'
import type { KafkaSettings, ProcessorSettings } from '../settings/settings.ts'
import type { StoredEvent } from '../stored-event.ts'
import type { ResultChange } from './processor.ts'
import { type RunRequest, sentEvent, Thread } from './thread.ts'

/** The value in the bytes that leave. */
export type Change = Omit<ResultChange, 'payload' | 'rawValue'> & { readonly value?: Uint8Array }

export type Decision =
  | { readonly action: 'publish'; readonly change: Change }
  | { readonly action: 'discard'; readonly reason: string | null }
  | { readonly action: 'failed'; readonly message: string }
  | { readonly action: 'timeout'; readonly message: string }

/** Services are resolved one event at a time: more than two rarely meet, and threads cost memory. */
const MOST_THREADS = 2

const UNCHANGED: Decision = { action: 'publish', change: {} }
const CLOSED: Decision = { action: 'failed', message: 'the processors were closed' }

interface Waiting {
  readonly request: RunRequest
  readonly decide: (decision: Decision | Promise<Decision>) => void
}

export class Processors {
  readonly #entries: readonly ProcessorSettings[]
  readonly #timeoutMs: number
  readonly #log: Log
  /** Which entries have a `when`. */
  #whens: readonly boolean[] = []
  readonly #threads = new Set<Thread>()
  /** Of no use, but not ended yet. */
  readonly #ending = new Set<Thread>()
  readonly #ready: Thread[] = []
  readonly #waiting: Waiting[] = []
  #isClosed = false

  private constructor({ processors, processorTimeoutMs }: KafkaSettings, log: Log) {
    this.#entries = processors
    this.#timeoutMs = processorTimeoutMs
    this.#log = log
  }

  /** Loads all modules in a thread. Rejects with a ConfigError. Close it when done. */
  static async load(settings: KafkaSettings, log: Log = silentLog): Promise<Processors> {
    const processors = new Processors(settings, log)
    if (settings.processors.length === 0) return processors
    try {
      processors.#whens = await processors.#start().loaded
      return processors
    } catch (error) {
      await processors.close()
      throw error
    }
  }

  /** Most events have no processor, and cost no thread. */
  async decide(event: StoredEvent): Promise<Decision> {
    const entries = this.#entriesFor(event)
    if (entries.length === 0) return UNCHANGED
    if (this.#isClosed) return CLOSED
    const { dlqId, service } = event
    const said = (text: string): void => this.#log.info({ dlqId, service, text }, 'a processor writes')
    // The time begins when a thread is free.
    const request = { entries, event: sentEvent(event), timeoutMs: this.#timeoutMs, said }
    return new Promise((decide) => {
      this.#waiting.push({ request, decide })
      this.#next()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const { decide } of this.#waiting.splice(0)) decide(CLOSED)
    await Promise.all([...this.#threads, ...this.#ending].map((thread) => thread.end()))
  }

  /** It can be given a run. */
  ready(thread: Thread): void {
    this.#ready.push(thread)
    this.#next()
  }

  /** It will never be ready again. */
  gone(thread: Thread): void {
    this.#threads.delete(thread)
    const place = this.#ready.indexOf(thread)
    if (place >= 0) this.#ready.splice(place, 1)
    this.#ending.add(thread)
    void thread.exited.then(() => this.#ending.delete(thread))
    thread.loaded.then(
      () => this.#next(),
      (error: unknown) => {
        // They were loaded once, so somebody has changed them. One run learns of it, and the next tries again.
        this.#waiting.shift()?.decide({ action: 'failed', message: describeError(error).errorMessage })
        this.#next()
      },
    )
  }

  /** In order, up to the first without a `when`. */
  #entriesFor(event: StoredEvent): readonly number[] {
    const found: number[] = []
    for (const [index, { match }] of this.#entries.entries()) {
      if (!isFor(match, event)) continue
      found.push(index)
      if (this.#whens[index] !== true) break
    }
    return found
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

const isFor = ({ service, topic, type }: ProcessorSettings['match'], event: StoredEvent): boolean =>
  allows(service, event.service) && allows(topic, event.originalTopic) && allows(type, event.facts.type)

const allows = (names: readonly string[] | null, name: string): boolean =>
  names === null || names.includes(name)
