/**
 * One thread of processors, and its messages.
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
import type { Decision, Processors } from './processors.ts'

/** The biggest events are some tens of megabytes. */
const LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }
/** Buffers do not count to the heap: they are watched here. */
const MOST_BUFFER_BYTES = 256 * 1_048_576
const LOOK_EVERY_MS = 50

const LOAD_MS = 30_000
/** Left to a processor after its signal. */
const GRACE_MS = 100

const TOO_MUCH_MEMORY = 'the processor used too much memory'

export interface RunRequest {
  readonly entries: readonly number[]
  readonly event: SentEvent
  readonly timeoutMs: number
  /** Called for each line, until the next run begins. */
  readonly said: (text: string) => void
}

interface Run {
  readonly decide: (decision: Decision) => void
  isDecided: boolean
  readonly timer: NodeJS.Timeout
  /** Ends the watch over memory. */
  readonly over: AbortController
}

export class Thread {
  /** Which entries have a `when`; rejects with a ConfigError. */
  readonly loaded: Promise<readonly boolean[]>
  readonly #worker: Worker
  readonly #listener: Processors
  readonly exited: Promise<void>
  readonly #loading = Promise.withResolvers<readonly boolean[]>()
  readonly #loadTimer: NodeJS.Timeout
  #said: RunRequest['said']
  #run: Run | null = null
  #isGone = false
  #isOut = false
  #grace: NodeJS.Timeout | undefined
  /** As far as it is known. */
  #reason = 'the processor ended its thread, as process.exit does'

  constructor(entries: readonly ModuleExport[], listener: Processors, said: RunRequest['said']) {
    this.#listener = listener
    this.#said = said
    this.loaded = this.#loading.promise
    this.loaded.catch(() => {})
    // TypeScript in the sources, JavaScript in the package.
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

  /** Only when the thread is ready. */
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

  /** Ends it, whatever it does. */
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

  /** No decision came, or one did and the thread does not come to rest. */
  #timeIsUp(timeoutMs: number): void {
    this.#decide({ action: 'timeout', message: `the processor took longer than ${timeoutMs} ms` })
    this.#leave(this.#reason)
    this.#post({ kind: 'abort' })
    this.#grace = setTimeout(() => void this.end(), GRACE_MS)
  }

  async #watchMemory(over: AbortSignal): Promise<void> {
    while (await sleep(LOOK_EVERY_MS, over)) {
      // A thread that has ended has no statistics.
      const statistics = await this.#worker.getHeapStatistics().catch(() => null)
      if (statistics !== null && statistics.external_memory > MOST_BUFFER_BYTES)
        await this.end(TOO_MUCH_MEMORY)
    }
  }

  /** Of no use from here on; whoever waits is told why. */
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

/** The user's messages are passed on, their stacks are not. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return TOO_MUCH_MEMORY
  const message = error instanceof Error ? error.message : 'something was thrown'
  return `the processor left an error unhandled: ${message.slice(0, 1_000)}`
}

export interface ModuleExport {
  readonly module: string
  readonly export: string
}

/** The payload is read in the thread: it may take long, or too much memory. */
export type SentEvent = Omit<DeadEvent, 'payload' | 'timestamp' | 'key'> & {
  readonly timestampMs: number
  /** As published without changes; null also without one. */
  readonly publishedKey: Uint8Array | null
}

export type ToThread =
  | { readonly kind: 'run'; readonly entries: readonly number[]; readonly event: SentEvent }
  | { readonly kind: 'abort' }

export type FromThread =
  | { readonly kind: 'loaded'; readonly whens: readonly boolean[] }
  /** By their keys. */
  | { readonly kind: 'broken'; readonly problems: readonly string[] }
  | { readonly kind: 'said'; readonly text: string }
  | { readonly kind: 'decided'; readonly decision: Decision }
  /** Everything that the last run set going at once is done. */
  | { readonly kind: 'ready' }

/** In bytes of its own, so that they can be handed over. */
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

const buffersOf = ({ rawKey, rawValue, publishedKey, headers }: SentEvent): readonly ArrayBuffer[] =>
  [rawKey, rawValue, publishedKey, ...headers.map(({ value }) => value)].flatMap((bytes) =>
    bytes?.buffer instanceof ArrayBuffer ? [bytes.buffer] : [],
  )

const copied = (bytes: Uint8Array | null): Uint8Array | null =>
  bytes === null ? null : new Uint8Array(bytes)
