/**
 * Commits offsets of records that are durable. One request is under way at a time; what gathers meanwhile goes with the next. A refusal
 * is logged and tried again: until it works, the records are read twice at worst, and the store knows them.
 */
import type { Log } from '../../../core/log.ts'
import { rest } from '../../../core/waiting.ts'
import { troubleOf } from '../../../outgoing/kafka/library.ts'
import { partitionKey } from '../event.ts'
import type { Offset, OffsetAnswer } from './reader-group.ts'

interface CommitsOptions {
  readonly commit: (offsets: readonly Offset[]) => Promise<readonly OffsetAnswer[]>
  readonly onCommitted: (offset: Offset) => void
  readonly log: Log
}

const PAUSE_AFTER_FAILURE_MS = 1_000

export class Commits {
  readonly #options: CommitsOptions
  readonly #waiting = new Map<string, Offset>()
  #work: Promise<void> | null = null
  readonly #ending = new AbortController()

  constructor(options: CommitsOptions) {
    this.#options = options
  }

  /** The records before this offset are durable. */
  note(offset: Offset): void {
    this.#waiting.set(partitionKey(offset), offset)
    this.#start()
  }

  /** Another member reads this partition now. */
  forget(partition: Pick<Offset, 'topic' | 'partition'>): void {
    this.#waiting.delete(partitionKey(partition))
  }

  /** Tries what waits once more, and ends. */
  async close(): Promise<void> {
    this.#ending.abort()
    await this.#work
    await this.#commitOnce()
  }

  #start(): void {
    if (this.#work !== null || this.#ending.signal.aborted) return
    this.#work = this.#commitAll().finally(() => {
      this.#work = null
    })
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.size > 0 && !this.#ending.signal.aborted) {
      if (await this.#commitOnce()) continue
      await rest(PAUSE_AFTER_FAILURE_MS, this.#ending.signal)
    }
  }

  /** False when anything was refused. */
  async #commitOnce(): Promise<boolean> {
    const offsets = [...this.#waiting.values()]
    if (offsets.length === 0) return true
    try {
      const refused = new Set<string>()
      for (const { code, ...offset } of await this.#options.commit(offsets)) {
        if (code !== '') refused.add(code)
        else this.#done(offset)
      }
      if (refused.size === 0) return true
      this.#options.log.warn({ codes: [...refused] }, 'Kafka refused to commit offsets; will try again')
    } catch (error) {
      this.#options.log.warn(troubleOf(error), 'offsets could not be committed to Kafka; will try again')
    }
    return false
  }

  #done(offset: Offset): void {
    const key = partitionKey(offset)
    // A later one may have come while this one was under way.
    if (this.#waiting.get(key)?.offset === offset.offset) this.#waiting.delete(key)
    this.#options.onCommitted(offset)
  }
}
