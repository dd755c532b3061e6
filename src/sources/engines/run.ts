/**
 * One run: a message that was leased, its handler, and the verdict on it.
 *
 *   read ─► handler ─► succeeded | failed
 *     │        └─ time-out: failed; lease lost or engine stopped: no verdict
 *     └─ unreadable, delivered too often: failed for good, without a run of the handler
 */
import { randomUUID } from 'node:crypto'
import type { Clock, Instant } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { UNNAMED_INSTANCE as PUBLISHER } from '../../core/source-id.ts'
import { describeError, PermanentError } from '../../core/thrown.ts'
import type { Held } from '../../core/work/held.ts'
import type { LetterId } from '../../letters/letter.ts'
import { cleanInstanceId, correlationIdIn, readMessage } from '../../queues/engines/engine-queues.ts'
import type { FailedRun, LeasedItem, Run } from '../../queues/queue.ts'
import type { EngineTerms, RunContext } from './options.ts'

export interface Leased {
  readonly item: LeasedItem
  readonly partition: number
}

/** What the handler still returns is ignored. */
export class HandlerTimedOut extends Error {
  override readonly name = 'HandlerTimedOut'
}

/** The lease ended; somebody else may have the message. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

export class EngineStopped extends Error {
  override readonly name = 'EngineStopped'
}

export type Verdict =
  | { readonly verdict: 'succeeded'; readonly run: Run }
  | { readonly verdict: 'failed'; readonly run: FailedRun; readonly permanent: boolean }
  | { readonly verdict: 'none'; readonly reason: unknown }

export interface RunOffice {
  readonly clock: Clock
  readonly log: Log
  readonly actor: string
  /** The case of a message that failed before. */
  readonly readCase: (caseId: LetterId) => Promise<{ readonly correlationId: string | null } | null>
  readonly extendLease: (held: Held<Leased>) => Promise<void>
}

/** Rejects only when the case of the message cannot be read. */
export async function runOn(held: Held<Leased>, terms: EngineTerms, office: RunOffice): Promise<Verdict> {
  const { item } = held.job
  const startedAt = office.clock.now()
  const read = readMessage(item.payload)
  const message = read.ok ? read.message : undefined
  const correlationId = correlationIdIn(message) ?? (await correlationIdOnFile(item, office)) ?? randomUUID()
  const log = labelled(office.log, {
    engine: terms.name,
    operation: terms.operation,
    itemId: item.id,
    correlationId,
  })
  const about: RunFacts = {
    terms,
    office,
    startedAt,
    input: item.payload,
    correlationId,
    instanceId: read.ok ? instanceIdOf(terms, message, log) : PUBLISHER,
  }
  if (!read.ok) return failed(about, new UnparsableMessage(`the message is not JSON; ${read.reason}`), true)
  if (item.attempts > terms.maxAttempts) return failed(about, tooOften(item.attempts, terms), true)
  try {
    const output = await held.unlessEnded(() =>
      terms.handler(message, contextOf(held, correlationId, log, office)),
    )
    return { verdict: 'succeeded', run: { ...runOf(about), output: outputBytes(output) } }
  } catch (error) {
    if (!held.isEndedBy(error)) return failed(about, error, error instanceof PermanentError)
    if (error instanceof HandlerTimedOut) return failed(about, error, false)
    return { verdict: 'none', reason: error }
  }
}

class UnparsableMessage extends Error {
  override readonly name = 'UnparsableMessage'
}

/** Its workers vanished while they had it. Running it again could take the next one too. */
class DeliveredTooOften extends Error {
  override readonly name = 'DeliveredTooOften'
}

const tooOften = (deliveries: number, { maxAttempts }: EngineTerms): Error =>
  new DeliveredTooOften(
    `the message was delivered ${deliveries} times and may be attempted ${maxAttempts} times; workers that had it ended without a result, as when they crash, so it was not run again`,
  )

interface RunFacts {
  readonly terms: EngineTerms
  readonly office: RunOffice
  readonly startedAt: Instant
  readonly input: Uint8Array
  readonly correlationId: string
  readonly instanceId: string
}

function runOf({ terms, office, startedAt, input, correlationId, instanceId }: RunFacts): Run {
  return {
    engine: terms.name,
    operation: terms.operation,
    instanceId,
    correlationId,
    actor: office.actor,
    durationMs: Number(office.clock.now() - startedAt) / 1_000,
    input,
    output: null,
  }
}

const failed = (about: RunFacts, error: unknown, permanent: boolean): Verdict => ({
  verdict: 'failed',
  run: { ...runOf(about), ...describeError(error) },
  permanent,
})

function contextOf(held: Held<Leased>, correlationId: string, log: Log, office: RunOffice): RunContext {
  return {
    attempt: held.job.item.attempts,
    correlationId,
    signal: held.signal,
    log,
    extendLease: () => office.extendLease(held),
  }
}

async function correlationIdOnFile(item: LeasedItem, { readCase }: RunOffice): Promise<string | null> {
  if (item.caseId === undefined) return null
  return (await readCase(item.caseId))?.correlationId ?? null
}

/** The application's function may throw on a message that its handler would refuse. */
function instanceIdOf(terms: EngineTerms, message: unknown, log: Log): string {
  try {
    return cleanInstanceId(terms.instanceId(message))
  } catch (error) {
    log.warn({ err: error }, `the instance of a message could not be told; it is taken for ${PUBLISHER}`)
    return PUBLISHER
  }
}

function labelled(log: Log, label: object): Log {
  return {
    debug: (details, message) => log.debug({ ...label, ...details }, message),
    info: (details, message) => log.info({ ...label, ...details }, message),
    warn: (details, message) => log.warn({ ...label, ...details }, message),
    error: (details, message) => log.error({ ...label, ...details }, message),
  }
}

const MAX_OUTPUT_BYTES = 1_048_576

/** Null without output. Output that cannot be written is noted: the run has succeeded. */
function outputBytes(output: unknown): Uint8Array | null {
  try {
    const text = JSON.stringify(output)
    if (text === undefined) return null
    const bytes = Buffer.from(text)
    if (bytes.length <= MAX_OUTPUT_BYTES) return bytes
    return note(`the output was left out; its ${bytes.length} bytes are more than ${MAX_OUTPUT_BYTES}`)
  } catch (error) {
    return note(`the output cannot be written as JSON; ${describeError(error).errorMessage}`)
  }
}

const note = (text: string): Uint8Array => Buffer.from(JSON.stringify({ note: text }))
