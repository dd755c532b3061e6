/**
 * Runs mappings on payloads, one letter at a time, in a process that is started when it is needed, ended when it is not, and
 * replaced when an expression has made it useless.
 */
import { failure } from '../../core/errors.ts'
import { type Log, silentLog } from '../../core/log.ts'
import { type MappingOutcome, MappingRunner, TOO_LONG } from './mapping-runner.ts'

const IDLE_MS = 10_000

/** Whoever makes one closes it. */
export class Mapper {
  readonly #log: Log
  #runner: MappingRunner | null = null
  /** Those that are not needed any more and may not be over yet. */
  readonly #leaving = new Set<Promise<void>>()
  /** Settles when all letters before the next one are done. */
  #turn: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(log: Log = silentLog) {
    this.#log = log
  }

  /** The payload that a mapping makes of this one. Rejects when mappings cannot be run here, or no longer. */
  map(mapping: string, payload: Uint8Array): Promise<MappingOutcome> {
    clearTimeout(this.#idle)
    this.#waiting++
    const done = this.#turn.then(() => this.#run(mapping, payload))
    this.#turn = done.then(
      () => this.#rest(),
      () => this.#rest(),
    )
    return done
  }

  /** Ends the process; letters that wait for it are not repaired, and not refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#endRunner()
    await Promise.all(this.#leaving)
  }

  async #run(mapping: string, payload: Uint8Array): Promise<MappingOutcome> {
    if (this.#isClosed) throw failure('service_stopping')
    const runner = this.#readyRunner()
    await runner.ready
    const outcome = await runner.run(mapping, payload)
    if (runner.isGone) {
      const reason = outcome.kind === 'refused' ? outcome.reason : TOO_LONG
      this.#log.warn({ reason }, 'a mapping was ended, and its process with it')
    }
    return outcome
  }

  #readyRunner(): MappingRunner {
    if (this.#runner?.isGone) this.#endRunner()
    this.#runner ??= new MappingRunner()
    return this.#runner
  }

  #rest(): void {
    this.#waiting--
    if (this.#waiting === 0 && !this.#isClosed)
      this.#idle = setTimeout(() => this.#endRunner(), IDLE_MS).unref()
  }

  #endRunner(): void {
    clearTimeout(this.#idle)
    if (this.#runner === null) return
    const leaving = this.#runner.end().finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
    this.#runner = null
  }
}
