/** What is written on the letters of items that die in a queue, each note once. */
import { later } from '../core/clock.ts'
import { freeKeyTime } from '../letters/capture.ts'
import { readCase } from '../letters/confirm.ts'
import { type Death, type DeathNote, noteDeath, type Registers } from '../letters/death-note.ts'
import type { CaseRow } from '../letters/reopen.ts'
import type { Cycle } from './cycle.ts'
import type { MessageNames } from './engine-deaths.ts'
import type { DeathReason, FailedRun, GivenError } from './queue.ts'
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

/** How an item died, as far as its letter tells. */
export interface Ending {
  readonly reason: DeathReason
  readonly run: FailedRun | null
  readonly error: GivenError | null
}

/** The engine whose queue an item dies in, and what the item says about itself. */
export interface Owner {
  readonly engine: string
  readonly names: MessageNames | null
}

export class NoteBook {
  readonly #cycle: Cycle
  readonly #registers: Registers
  readonly #written: DeathNote[] = []
  /** Of items that have nothing of their own to tell, by what they died of. */
  readonly #shared = new Map<string, number>()
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

  /** The note for the letter of an item; `owner` is null in a plain queue. */
  async ofDeath(item: ItemFacts, sourceId: string, ending: Ending, owner: Owner | null): Promise<number> {
    const { queueName } = this.#cycle.queue
    const plain = plainDeath(queueName, ending)
    if (ending.run === null && item.caseId === null && owner === null) return this.#share(plain)
    const before = item.caseId === null ? null : await readCase(this.#cycle.tx, item.caseId)
    const times = before === null ? {} : { firstFailureAt: before.firstFailureAt }
    const correlationId = before?.correlationId ?? null
    if (ending.run !== null) return this.#write(runDeath(queueName, ending.run), times)
    if (owner === null) return this.#write({ ...plain, correlationId }, times)
    const death = {
      ...plain,
      source: 'engines',
      engine: owner.engine,
      // Under names of its own: letters without any are those of plain queues.
      instanceId: owner.names?.instanceId ?? sourceId,
      correlationId: owner.names?.correlationId ?? correlationId ?? sourceId,
    } as const
    return this.#write(death, { ...times, isUnique: death.instanceId === sourceId })
  }

  /** The note for a letter that is reopened: its source, engine and queue stay. */
  ofRelapse(letter: CaseRow, ending: Ending): Promise<DeathNote> {
    const { source, engine, queue } = letter
    const { reason, run } = ending
    const record = run === null ? { ...NO_RUN, operation: 'reopen' } : recordOf(run)
    const error = run === null ? plainError(ending) : errorOf(run)
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

  /** One note for all that died of the same. */
  async #share(death: Death): Promise<number> {
    const key = JSON.stringify([death.reason, death.errorClass, death.errorMessage, death.errorStack])
    const known = this.#shared.get(key)
    if (known !== undefined) return known
    const note = await this.#write(death, {})
    this.#shared.set(key, note)
    return note
  }

  async #write(
    death: Death,
    {
      isUnique = death.instanceId === null,
      ...times
    }: {
      readonly firstFailureAt?: DeathNote['firstFailureAt']
      /** No other letter has the instance. */
      readonly isUnique?: boolean
    },
  ): Promise<number> {
    const { now } = this.#cycle
    const { engine, instanceId } = death
    const capturedAt = isUnique || instanceId === null ? now : await this.#freeKey(engine, instanceId)
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

const plainDeath = (queueName: string, ending: Ending): Death => ({
  source: 'queues',
  engine: 'queues',
  queue: queueName,
  instanceId: null,
  correlationId: null,
  reason: ending.reason,
  ...plainError(ending),
  record: NO_RUN,
})

const runDeath = (queueName: string, run: FailedRun): Death => ({
  source: 'engines',
  engine: run.engine,
  queue: queueName,
  instanceId: run.instanceId,
  correlationId: run.correlationId,
  reason: 'failed',
  ...errorOf(run),
  record: recordOf(run),
})

/** What its consumer gave, in the words for its reason where that left some out. */
const plainError = ({ reason, error }: Ending) => ({ ...describeGiven(error, PLAIN[reason]), failedBy: null })

/** An error as letters keep it, with `words` for what was not given. */
export const describeGiven = (
  error: GivenError | null,
  words: { readonly errorClass: string; readonly errorMessage: string },
) => ({
  errorClass: error?.errorClass || words.errorClass,
  errorMessage: error?.errorMessage || words.errorMessage,
  errorStack: error?.errorStack || null,
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
