/**
 * One thread of processors, seen from the server, and what the two say to each other.
 *
 *   loading ──► ready ──► running ──► decided ──► ready
 *      └──────────┴──────────┴───────────┴──────► gone    it ended, is out of time or memory, or is no longer needed
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ConfigError } from '../../../core/settings/config-error.ts'
import { sleep } from '../../../core/waiting.ts'
import { UNKNOWN } from '../event.ts'
import type { StoredEvent } from '../stored-event.ts'
import { shownBytes } from '../wire/bytes.ts'
import type { DeadEvent } from './processor.ts'
import type { Decision } from './processors.ts'

/** What one thread may hold; the biggest events are some tens of megabytes. */
const LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }
/** Buffers do not count to the heap: they are looked after here. */
const MOST_BUFFER_BYTES = 256 * 1_048_576
const LOOK_EVERY_MS = 50

const LOAD_MS = 30_000
/** What is left to a processor once its signal was aborted. */
const GRACE_MS = 100

const TOO_MUCH_MEMORY = 'the processor used too much memory'

export interface ThreadListener {
  /** It can be given a run. */
  ready(thread: Thread): void
  /** It will never be ready again. */
  gone(thread: Thread): void
}

export interface RunRequest {
  /** The entries to ask, in this order. */
  readonly entries: readonly number[]
  readonly event: SentEvent
  readonly timeoutMs: number
  /** Told of the lines that are written, until the next run begins. */
  readonly said: (text: string) => void
}

interface Run {
  readonly decide: (decision: Decision) => void
  isDecided: boolean
  readonly timer: NodeJS.Timeout
  /** Ends the look after its memory. */
  readonly over: AbortController
}

export class Thread {
  /** Which entries have a `when`; rejects with a ConfigError when they cannot be loaded. */
  readonly loaded: Promise<readonly boolean[]>
  readonly #worker: Worker
  readonly #listener: ThreadListener
  /** Resolves when nothing of it is left. */
  readonly exited: Promise<void>
  readonly #loading = Promise.withResolvers<readonly boolean[]>()
  readonly #loadTimer: NodeJS.Timeout
  #said: RunRequest['said']
  #run: Run | null = null
  #isGone = false
  #isOut = false
  #grace: NodeJS.Timeout | undefined
  /** Why it ends, as far as that is known. */
  #reason = 'the processor ended its thread, as process.exit does'

  constructor(entries: readonly ModuleExport[], listener: ThreadListener, said: RunRequest['said']) {
    this.#listener = listener
    this.#said = said
    this.loaded = this.#loading.promise
    // Whoever is interested waits for it.
    this.loaded.catch(() => {})
    // From the sources it is TypeScript, in the package JavaScript.
    const code = new URL(`./worker${extname(import.meta.filename)}`, import.meta.url)
    this.#worker = new Worker(code, {
      name: 'bartleby-processors',
      workerData: entries,
      resourceLimits: LIMITS,
      execArgv: [],
      stdout: true,
      stderr: true,
    })
    // Nobody reads what is written past `console`; it must not pile up.
    this.#worker.stdout.resume()
    this.#worker.stderr.resume()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.exited = promise
    this.#worker.on('message', (message: FromThread) => this.#onMessage(message))
    this.#worker.on('error', (error) => {
      this.#reason = reasonOf(error)
    })
    this.#worker.once('exit', () => {
      this.#isOut = true
      this.#leave(this.#reason)
      resolve()
    })
    this.#loadTimer = setTimeout(
      () => void this.end(`they were not loaded within ${LOAD_MS / 1_000} seconds`),
      LOAD_MS,
    )
  }

  /** Asks the first entry that is for the event. Only when the thread is ready. */
  run({ entries, event, timeoutMs, said }: RunRequest): Promise<Decision> {
    this.#said = said
    return new Promise((decide) => {
      const over = new AbortController()
      const timer = setTimeout(() => this.#timeIsUp(timeoutMs), timeoutMs)
      this.#run = { decide, isDecided: false, timer, over }
      void this.#watchMemory(over.signal)
      this.#post({ kind: 'run', entries, event }, buffersOf(event))
    })
  }

  /** Ends it, whatever it does; resolves when it is over. */
  async end(reason = 'the processors were closed'): Promise<void> {
    this.#leave(reason)
    clearTimeout(this.#grace)
    if (!this.#isOut) await this.#worker.terminate()
    await this.exited
  }

  #onMessage(message: FromThread): void {
    switch (message.kind) {
      case 'said':
        this.#said(message.text)
        return
      case 'broken':
        this.#loading.reject(new ConfigError(message.problems))
        void this.end()
        return
      case 'loaded':
        clearTimeout(this.#loadTimer)
        this.#loading.resolve(message.whens)
        if (!this.#isGone) this.#listener.ready(this)
        return
      case 'decided':
        this.#decide(message.decision)
        return
      case 'ready':
        this.#endRun()
        if (!this.#isGone) this.#listener.ready(this)
    }
  }

  #decide(decision: Decision): void {
    if (this.#run === null || this.#run.isDecided) return
    this.#run.isDecided = true
    this.#run.decide(decision)
  }

  #endRun(): void {
    clearTimeout(this.#run?.timer)
    this.#run?.over.abort()
    this.#run = null
  }

  /** A decision is there, but the thread does not come to rest; or there is none. */
  #timeIsUp(timeoutMs: number): void {
    this.#decide({ action: 'timeout', message: `the processor took longer than ${timeoutMs} ms` })
    this.#leave(this.#reason)
    this.#post({ kind: 'abort' })
    this.#grace = setTimeout(() => void this.end(), GRACE_MS)
  }

  async #watchMemory(over: AbortSignal): Promise<void> {
    while (await sleep(LOOK_EVERY_MS, over)) {
      // A thread that has ended meanwhile has no statistics.
      const statistics = await this.#worker.getHeapStatistics().catch(() => null)
      if (statistics !== null && statistics.external_memory > MOST_BUFFER_BYTES)
        await this.end(TOO_MUCH_MEMORY)
    }
  }

  /** From here on it is of no use to anybody; who still waits for it is told why. */
  #leave(reason: string): void {
    if (this.#isGone) return
    this.#isGone = true
    clearTimeout(this.#loadTimer)
    this.#loading.reject(new ConfigError([`kafka.processors: ${reason}`]))
    this.#decide({ action: 'failed', message: reason })
    this.#endRun()
    this.#listener.gone(this)
  }

  #post(message: ToThread, transfer: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, [...transfer])
  }
}

/** What ended a thread that did not end by itself. Messages of the user's errors are passed on, their stacks are not. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return TOO_MUCH_MEMORY
  const message = error instanceof Error ? error.message : 'something was thrown'
  return `the processor left an error unhandled: ${message.slice(0, 1_000)}`
}

/** An export of a file; a thread is given all of them when it starts. */
export interface ModuleExport {
  readonly module: string
  readonly export: string
}

/** An event on its way to a thread. The payload is read there: it may take long, or too much memory. */
export type SentEvent = Omit<DeadEvent, 'payload' | 'timestamp' | 'key'> & {
  readonly timestampMs: number
  /** As it is published when nothing is changed; null also when there is none. */
  readonly publishedKey: Uint8Array | null
}

export type ToThread =
  /** Asks these entries, in this order, the first that is for the event. */
  | { readonly kind: 'run'; readonly entries: readonly number[]; readonly event: SentEvent }
  | { readonly kind: 'abort' }

export type FromThread =
  /** `whens`: which entries must be asked whether an event is for them. */
  | { readonly kind: 'loaded'; readonly whens: readonly boolean[] }
  /** What is wrong with entries, by their keys. */
  | { readonly kind: 'broken'; readonly problems: readonly string[] }
  | { readonly kind: 'said'; readonly text: string }
  | { readonly kind: 'decided'; readonly decision: Decision }
  /** Everything that the last run set going at once is done. */
  | { readonly kind: 'ready' }

/** The event for a thread, in bytes of its own: none of them belongs to anything larger. */
export function sentEvent(event: StoredEvent): SentEvent {
  const { facts, order } = event
  return {
    service: event.service,
    topic: event.originalTopic === UNKNOWN ? null : event.originalTopic,
    type: facts.type,
    rawKey: copied(event.key),
    rawValue: copied(event.editedValue ?? event.value),
    publishedKey:
      facts.originalKey === undefined
        ? copied(event.key)
        : new Uint8Array(Buffer.from(facts.originalKey, 'base64')),
    headers: event.headers.map(({ name, value }) => ({ name: shownBytes(name), value: copied(value) })),
    correlationId: facts.correlationId,
    originalEventId: facts.originalEventId,
    timestampMs: Number(event.timestampMs),
    position: { topic: order.topic, partition: order.partition, offset: order.offset },
    exception: facts.exception,
    attempts: event.attempts,
    reasons: facts.reasons,
    warnings: facts.warnings,
  }
}

/** What may be handed over instead of being copied once more. */
const buffersOf = ({ rawKey, rawValue, publishedKey, headers }: SentEvent): readonly ArrayBuffer[] =>
  [rawKey, rawValue, publishedKey, ...headers.map(({ value }) => value)].flatMap((bytes) =>
    bytes?.buffer instanceof ArrayBuffer ? [bytes.buffer] : [],
  )

const copied = (bytes: Uint8Array | null): Uint8Array | null =>
  bytes === null ? null : new Uint8Array(bytes)
