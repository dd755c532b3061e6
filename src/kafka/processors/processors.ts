/**
 * The processors of a configuration, and which of them an event is for. A dry run and the real thing are the same call, and nothing that
 * a processor sees differs between them.
 */
import { type Log, silentLog } from '../../core/log.ts'
import type { StoredEvent } from '../event.ts'
import type { Decision, EventProcessors } from '../ports.ts'
import type { KafkaSettings, ProcessorSettings } from '../settings.ts'
import { sentEvent } from './calls.ts'
import { Threads } from './threads.ts'

const UNCHANGED: Decision = { action: 'publish', change: {} }

export class Processors implements EventProcessors {
  readonly #entries: readonly ProcessorSettings[]
  readonly #timeoutMs: number
  readonly #log: Log
  readonly #threads: Threads
  /** Which entries must be asked whether an event is for them. */
  #whens: readonly boolean[] = []

  private constructor({ processors, processorTimeoutMs }: KafkaSettings, log: Log) {
    this.#entries = processors
    this.#timeoutMs = processorTimeoutMs
    this.#log = log
    this.#threads = new Threads(processors, log)
  }

  /** Loads all modules, in a thread. Rejects with a ConfigError that says what is wrong with them. Close it when done. */
  static async load(settings: KafkaSettings, log: Log = silentLog): Promise<Processors> {
    const processors = new Processors(settings, log)
    if (settings.processors.length === 0) return processors
    try {
      processors.#whens = await processors.#threads.start()
      return processors
    } catch (error) {
      await processors.close()
      throw error
    }
  }

  /** What the first processor that is for the event decides. Most events have none; no thread is troubled with them. */
  async decide(event: StoredEvent): Promise<Decision> {
    const entries = this.#entriesFor(event)
    if (entries.length === 0) return UNCHANGED
    const { dlqId, service } = event
    return this.#threads.run({
      entries,
      event: sentEvent(event),
      timeoutMs: this.#timeoutMs,
      said: (text) => this.#log.info({ dlqId, service, text }, 'a processor writes'),
    })
  }

  close(): Promise<void> {
    return this.#threads.close()
  }

  /** The entries to ask, in their order: up to the first that takes every event that fits. */
  #entriesFor(event: StoredEvent): readonly number[] {
    const found: number[] = []
    for (const [index, { match }] of this.#entries.entries()) {
      if (!isFor(match, event)) continue
      found.push(index)
      if (this.#whens[index] !== true) break
    }
    return found
  }
}

const isFor = ({ service, topic, type }: ProcessorSettings['match'], event: StoredEvent): boolean =>
  allows(service, event.service) && allows(topic, event.originalTopic) && allows(type, event.facts.type)

const allows = (names: readonly string[] | null, name: string): boolean =>
  names === null || names.includes(name)
