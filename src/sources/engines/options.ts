/** Options of `office.engine`, checked when the engine is made. */

import type { BackoffPolicy } from '../../core/backoff.ts'
import { parseGoDuration, usFromNs } from '../../core/duration.ts'
import type { Log } from '../../core/log.ts'
import { unknownKey } from '../../core/settings/config-error.ts'
import type { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import { reservedNames } from '../../queues/engines/settings.ts'
import { checkQueueName } from '../../queues/validate.ts'

export interface RunContext {
  /** 1 for the first delivery of the message. */
  readonly attempt: number
  /** The same on every attempt, history row, letter and log line. */
  readonly correlationId: string
  /** Aborted when the result no longer counts: on time-out, on shutdown, when the lease was lost. */
  readonly signal: AbortSignal
  /** Names engine, operation, message and correlation id on every line. */
  readonly log: Log
  /**
   * Lengthens the lease now, and rejects when it is lost. The runtime renews by itself; call this before an effect that
   * must not happen twice.
   */
  extendLease(): Promise<void>
}

export type EngineMessage = Readonly<Record<string, unknown>>

export interface EngineOptions<Message = EngineMessage> {
  /** A defined engine with a queue; without `engines.context` any other name too. */
  readonly name: string
  /** For an engine that is not defined; its name unless given. */
  readonly queue?: string
  /** The name of its runs in history; for a defined engine one of its own operations. */
  readonly operation: string
  /** The instance that a message is for; 'publisher' when it gives nothing. */
  readonly instanceId?: (message: Message) => unknown
  /** Deliveries before a message that keeps failing becomes a letter. Default 5. */
  readonly maxAttempts?: number
  /** Delays of failed messages. Default 10s, doubling up to 10m, shortened by chance by up to a fifth. */
  readonly backoff?: {
    readonly base?: string
    readonly factor?: number
    readonly max?: string
    /** Share that chance may take away, 0 to 1. */
    readonly jitter?: number
  }
  /** Handlers that run at the same time, 1 to 1000. Default 8. */
  readonly concurrency?: number
  /** How long one run may take. Default 2m. */
  readonly timeout?: string
  /** Does the work; what it returns is the output in history, what it throws is the failure. */
  readonly handler: (message: Message, ctx: RunContext) => unknown
}

/** Messages are any JSON from here on. */
export interface EngineTerms {
  readonly name: string
  readonly operation: string
  readonly queueName: string
  readonly maxAttempts: number
  readonly backoff: BackoffPolicy
  readonly concurrency: number
  readonly timeout: string
  readonly timeoutUs: bigint
  readonly instanceId: (message: unknown) => unknown
  readonly handler: (message: unknown, ctx: RunContext) => unknown
}

const OPTIONS = {
  name: true,
  queue: true,
  operation: true,
  instanceId: true,
  maxAttempts: true,
  backoff: true,
  concurrency: true,
  timeout: true,
  handler: true,
} as const satisfies Record<keyof EngineOptions, true>

const BACKOFF_OPTIONS = {
  base: true,
  factor: true,
  max: true,
  jitter: true,
} as const satisfies Record<keyof NonNullable<EngineOptions['backoff']>, true>

/** Refuses the first option that is wrong. */
export function termsOf<Message>(directory: EngineDirectory, options: EngineOptions<Message>): EngineTerms {
  const { name, operation, instanceId, handler, timeout = '2m', backoff = {} } = options
  refuseUnknown(options, OPTIONS)
  if (typeof backoff !== 'object' || backoff === null)
    throw refused('backoff', backoff, 'an object with base, factor, max and jitter')
  refuseUnknown(backoff, BACKOFF_OPTIONS, 'backoff.')
  const queueName = queueNameOf(directory, name, options.queue)
  directory.checkOwnOperation(name, operation)
  if (typeof handler !== 'function') throw refused('handler', handler, 'a function')
  if (instanceId !== undefined && typeof instanceId !== 'function') {
    throw refused('instanceId', instanceId, 'a function')
  }
  const { base = '10s', factor = 2, max = '10m', jitter = 0.2 } = backoff
  const baseUs = durationUs('backoff.base', base)
  const maxUs = durationUs('backoff.max', max)
  if (maxUs < baseUs)
    throw refused('backoff.max', max, `a duration of at least backoff.base, which is '${base}'`)
  if (!(factor >= 1 && factor <= 1_000)) throw refused('backoff.factor', factor, 'a number from 1 to 1000')
  if (!(jitter >= 0 && jitter <= 1)) throw refused('backoff.jitter', jitter, 'a number from 0 to 1')
  return {
    name,
    operation,
    queueName,
    maxAttempts: wholeNumber('maxAttempts', options.maxAttempts ?? 5, 65_536),
    backoff: { baseMs: Number(baseUs) / 1_000, factor, maxMs: Number(maxUs) / 1_000, jitter },
    concurrency: wholeNumber('concurrency', options.concurrency ?? 8, 1_000),
    timeout,
    timeoutUs: durationUs('timeout', timeout),
    // The application's type of messages cannot be proved.
    instanceId: (message) => instanceId?.(message as Message),
    handler: (message, ctx) => handler(message as Message, ctx),
  }
}

/** A mistyped option would silently do nothing. */
function refuseUnknown(given: object, known: Readonly<Record<string, true>>, prefix = ''): void {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(known, name))
      throw new TypeError(`engine option ${prefix}${name}: ${unknownKey(name, Object.keys(known))}`)
  }
}

/** A defined engine has the queue of its definition, any other the one it asks for. */
function queueNameOf(directory: EngineDirectory, name: string, asked: string | undefined): string {
  const { queue } = directory.definitionOf(name)
  if (!directory.has(name)) {
    const open = asked ?? name
    if (typeof open !== 'string') throw refused('queue', open, 'the name of a queue')
    checkQueueName(open)
    return open
  }
  if (reservedNames().includes(name)) throw refused('name', name, "a name that is not one of Bartleby's own")
  if (queue === null) {
    throw refused('name', name, 'an engine with a queue; record runs of this one over the history API')
  }
  if (asked !== undefined && asked !== queue) {
    throw refused('queue', asked, `leaving it out; the queue of '${name}' is defined as '${queue}'`)
  }
  return queue
}

function wholeNumber(option: string, value: number, largest: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= largest) return value
  throw refused(option, value, `a whole number from 1 to ${largest}`)
}

function durationUs(option: string, text: string): bigint {
  const parsed = typeof text === 'string' ? parseGoDuration(text) : null
  if (parsed?.ok && parsed.ns >= 1_000n) return usFromNs(parsed.ns)
  throw refused(option, text, "a duration above zero such as '30s' or '10m'")
}

const refused = (option: string, value: unknown, allowed: string): TypeError =>
  new TypeError(`engine option ${option}: '${String(value)}' is not allowed; allowed: ${allowed}`)
