/** What is written on the letters of items that die in a queue, each note once. */
import { later } from '../core/clock.ts'
import { freeKeyTime } from '../letters/capture.ts'
import { readCase } from '../letters/confirm.ts'
import { type Death, type DeathNote, noteDeath, type Registers } from '../letters/death-note.ts'
import type { CaseRow } from '../letters/reopen.ts'
import type { Cycle } from './cycle.ts'
import type { DeathReason, FailedRun } from './queue.ts'
import type { ItemFacts } from './sql/inspect.ts'

/** The words for deaths that nobody gave an error for. */
const PLAIN: Readonly<Record<DeathReason, { readonly errorClass: string; readonly errorMessage: string }>> = {
  attempts: {
    errorClass: 'AttemptsExhausted',
    errorMessage: 'the last permitted attempt ended without completion',
  },
  expired: { errorClass: 'Expired', errorMessage: 'it was not completed before its expire deadline' },
  rejected: { errorClass: 'Rejected', errorMessage: 'a consumer rejected it' },
  failed: { errorClass: 'Failed', errorMessage: 'its worker failed for good' },
}

export class NoteBook {
  readonly #cycle: Cycle
  readonly #registers: Registers
  readonly #written: DeathNote[] = []
  readonly #plain = new Map<DeathReason, number>()
  /** Row keys given to an instance by notes that are not in the store yet. */
  readonly #lastKeys = new Map<string, bigint>()

  constructor(cycle: Cycle, registers: Registers) {
    this.#cycle = cycle
    this.#registers = registers
  }

  /** The notes so far; `ofDeath` gives places in it. */
  get written(): readonly DeathNote[] {
    return this.#written
  }

  /** The note for the letter of an item. */
  async ofDeath(item: ItemFacts, reason: DeathReason, run: FailedRun | null): Promise<number> {
    const { queueName } = this.#cycle.queue
    if (run === null && item.caseId === null) {
      const known = this.#plain.get(reason)
      if (known !== undefined) return known
      const note = await this.#write(plainDeath(queueName, reason), {})
      this.#plain.set(reason, note)
      return note
    }
    const before = item.caseId === null ? null : await readCase(this.#cycle.tx, item.caseId)
    const times = before === null ? {} : { firstFailureAt: before.firstFailureAt }
    if (run === null) {
      const death = { ...plainDeath(queueName, reason), correlationId: before?.correlationId ?? null }
      return this.#write(death, times)
    }
    return this.#write(
      {
        source: 'engines',
        engine: run.engine,
        queue: queueName,
        instanceId: run.instanceId,
        correlationId: run.correlationId,
        reason: 'failed',
        ...errorOf(run),
        record: recordOf(run),
      },
      times,
    )
  }

  /** The note for a letter that is reopened: its source, engine and queue stay. */
  ofRelapse(letter: CaseRow, reason: DeathReason, run: FailedRun | null): Promise<DeathNote> {
    const { source, engine, queue } = letter
    const record = run === null ? { ...NO_RUN, operation: 'reopen' } : recordOf(run)
    const error = run === null ? { ...PLAIN[reason], errorStack: null, failedBy: null } : errorOf(run)
    const why = run === null ? reason : 'failed'
    return noteDeath(
      this.#cycle,
      this.#registers,
      {
        source,
        engine,
        queue: queue || null,
        instanceId: null,
        correlationId: null,
        reason: why,
        ...error,
        record,
      },
      { capturedAt: this.#cycle.now },
    )
  }

  async #write(
    death: Death,
    times: { readonly firstFailureAt?: DeathNote['firstFailureAt'] },
  ): Promise<number> {
    const { now } = this.#cycle
    const capturedAt = death.instanceId === null ? now : await this.#freeKey(death.engine, death.instanceId)
    const note = await noteDeath(this.#cycle, this.#registers, death, {
      capturedAt,
      lastFailureAt: now,
      ...times,
    })
    return this.#written.push(note) - 1
  }

  async #freeKey(engine: string, instanceId: string): Promise<DeathNote['capturedAt']> {
    const key = `${engine} ${instanceId}`
    const free = await freeKeyTime(this.#cycle.tx, engine, instanceId, this.#cycle.now)
    const last = this.#lastKeys.get(key)
    const taken = last !== undefined && last >= free ? later(free, last - free + 1n) : free
    this.#lastKeys.set(key, taken)
    return taken
  }
}

const NO_RUN = {
  operation: 'capture',
  status: 'Succeeded',
  durationMs: 0,
  actor: null,
  input: null,
  output: null,
} as const

const plainDeath = (queueName: string, reason: DeathReason): Death => ({
  source: 'queues',
  engine: 'queues',
  queue: queueName,
  instanceId: null,
  correlationId: null,
  reason,
  ...PLAIN[reason],
  errorStack: null,
  failedBy: null,
  record: NO_RUN,
})

const errorOf = (run: FailedRun) => ({
  errorClass: run.errorClass,
  errorMessage: run.errorMessage,
  errorStack: run.errorStack,
  failedBy: run.actor,
})

const recordOf = (run: FailedRun): Death['record'] => ({
  operation: run.operation,
  status: 'Failed',
  durationMs: run.durationMs,
  actor: run.actor,
  input: run.input,
  output: run.output,
})
