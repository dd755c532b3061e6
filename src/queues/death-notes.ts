/** What is written on the letters of items that die in a queue, each note once. */
import { type Instant, later } from '../core/clock.ts'
import { freeKeyTimes } from '../letters/capture.ts'
import { type Case, readCases } from '../letters/confirm.ts'
import { type Death, type DeathNote, noteDeath, type Registers } from '../letters/death-note.ts'
import type { LetterId } from '../letters/letter.ts'
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

/** An item that becomes a letter; `owner` is null in a plain queue. */
export interface Departed {
  readonly item: ItemFacts
  readonly sourceId: string
  readonly ending: Ending
  readonly owner: Owner | null
}

export class NoteBook {
  readonly #cycle: Cycle
  readonly #registers: Registers
  readonly #written: DeathNote[] = []
  /** Of items that have nothing of their own to tell, by what they died of. */
  readonly #shared = new Map<string, number>()
  /** By engine and instance, the first instant that no row key has, in the store or in a note. */
  readonly #freeKeys = new Map<string, Instant>()

  constructor(cycle: Cycle, registers: Registers) {
    this.#cycle = cycle
    this.#registers = registers
  }

  /** The notes so far; `ofDeaths` gives places in it. */
  get written(): readonly DeathNote[] {
    return this.#written
  }

  /** The notes for the letters of items, in their order. */
  async ofDeaths(dead: readonly Departed[]): Promise<readonly number[]> {
    const { tx, queue } = this.#cycle
    const cases = await readCases(
      tx,
      dead.flatMap(({ item }) => item.caseId ?? []),
    )
    const drafts = dead.map((each) => draft(queue.queueName, each, cases))
    await this.#findKeys(drafts)
    const places: number[] = []
    for (const each of drafts)
      places.push(each.isShared ? await this.#share(each.death) : await this.#write(each))
    return places
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
    const note = await this.#write({ death, isUnique: true, firstFailureAt: null })
    this.#shared.set(key, note)
    return note
  }

  async #write({ death, isUnique, firstFailureAt }: Omit<Draft, 'isShared'>): Promise<number> {
    const { now } = this.#cycle
    const note = await noteDeath(this.#cycle, this.#registers, death, {
      capturedAt: isUnique ? now : this.#takeKey(death),
      lastFailureAt: now,
      ...(firstFailureAt !== null && { firstFailureAt }),
    })
    return this.#written.push(note) - 1
  }

  /** Looks once for all that share their instance with other letters. */
  async #findKeys(drafts: readonly Draft[]): Promise<void> {
    const { tx, now } = this.#cycle
    const deaths = drafts.filter(({ isUnique }) => !isUnique).map(({ death }) => death)
    for (const [engine, mine] of Map.groupBy(deaths, (death) => death.engine)) {
      const instances = new Set(mine.flatMap(({ instanceId }) => instanceId ?? []))
      for (const [instance, free] of await freeKeyTimes(tx, engine, [...instances], now))
        this.#freeKeys.set(keyOf(engine, instance), free)
    }
  }

  #takeKey({ engine, instanceId }: Death): Instant {
    const key = keyOf(engine, instanceId)
    const free = this.#freeKeys.get(key) ?? this.#cycle.now
    this.#freeKeys.set(key, later(free, 1n))
    return free
  }
}

const keyOf = (engine: string, instanceId: string | null): string => `${engine} ${instanceId}`

/** A note before its numbers are known. */
interface Draft {
  readonly death: Death
  /** All that died of the same have one. */
  readonly isShared: boolean
  /** No other letter has the instance. */
  readonly isUnique: boolean
  /** null: it is the one that it died of. */
  readonly firstFailureAt: Instant | null
}

function draft(
  queueName: string,
  { item, sourceId, ending, owner }: Departed,
  cases: ReadonlyMap<LetterId, Case>,
): Draft {
  const plain = plainDeath(queueName, ending)
  if (ending.run === null && item.caseId === null && owner === null)
    return { death: plain, isShared: true, isUnique: true, firstFailureAt: null }
  const before = item.caseId === null ? undefined : cases.get(item.caseId)
  const own = { isShared: false, firstFailureAt: before?.firstFailureAt ?? null }
  const correlationId = before?.correlationId ?? null
  if (ending.run !== null) return { ...own, death: runDeath(queueName, ending.run), isUnique: false }
  if (owner === null) return { ...own, death: { ...plain, correlationId }, isUnique: true }
  const death = {
    ...plain,
    source: 'engines',
    engine: owner.engine,
    // Under names of its own: letters without any are those of plain queues.
    instanceId: owner.names?.instanceId ?? sourceId,
    correlationId: owner.names?.correlationId ?? correlationId ?? sourceId,
  } as const
  return { ...own, death, isUnique: death.instanceId === sourceId }
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
