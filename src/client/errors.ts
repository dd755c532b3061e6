/** Errors of the clients: one class per API, with a code to switch on. */
import type { RetryItem } from './types.ts'

/** No proper reply arrived. After all but `aborted` the call may still have done its work. */
export type TransportCode = 'network' | 'timed_out' | 'aborted' | 'unreadable_reply'

/** Whether the same call may succeed later. */
const CODES = {
  network: true,
  timed_out: true,
  aborted: false,
  unreadable_reply: true,
  /** A long poll ended without items. */
  lease_timed_out: true,
  overloaded: true,
  stopping: true,
  try_again: true,
  queue_unknown: false,
  queue_exists: false,
  dead_queue_unknown: false,
  item_unknown: false,
  not_leased: false,
  client_id_waiting: false,
  // The rest follow from the status alone.
  invalid: false,
  unauthorized: false,
  forbidden: false,
  undecodable: false,
  not_implemented: false,
  refused: false,
  internal: true,
} as const satisfies Readonly<Record<TransportCode, boolean>> & Readonly<Record<string, boolean>>

export type QueueErrorCode = keyof typeof CODES

/** `status` is 0 when no reply arrived. */
export class QueueClientError extends Error {
  override readonly name = 'QueueClientError'
  readonly code: QueueErrorCode
  readonly status: number

  constructor(code: QueueErrorCode, status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.status = status
  }

  /**
   * The same call may succeed later. After `network`, `timed_out` and `unreadable_reply` it may have succeeded already:
   * repeat a produce only with dedupe keys if items must not come twice.
   */
  get retryable(): boolean {
    return CODES[this.code]
  }
}

const TRY_AGAIN: ReadonlySet<string> = new Set<TransportCode>(['network', 'timed_out', 'unreadable_reply'])

/**
 * A call of the office API that did not succeed. `code` is the server's (docs/errors.md lists them) or a
 * `TransportCode`; `status` is 0 when no reply arrived.
 */
export class OfficeClientError extends Error {
  override readonly name = 'OfficeClientError'
  readonly code: string
  readonly status: number
  /** Undefined when no proper reply arrived. */
  readonly correlationId: string | undefined
  readonly details: unknown

  constructor(code: string, status: number, message: string, options: OfficeErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.status = status
    this.correlationId = options.correlationId
    this.details = options.details
  }

  /** The same call, with the same idempotency key, may succeed later. */
  get retryable(): boolean {
    return TRY_AGAIN.has(this.code) || this.status >= 500
  }
}

interface OfficeErrorOptions extends ErrorOptions {
  readonly correlationId?: string | undefined
  readonly details?: unknown
}

/** Thrown by a handler: the item goes to the dead queue at once, whatever attempts are left. */
export class DeadLetterError extends Error {
  override readonly name = 'DeadLetterError'
}

/** The server's messages do not change before the first ';'. */
const BY_MESSAGE: readonly (readonly [pattern: RegExp, code: QueueErrorCode])[] = [
  [/^request timeout; no items/, 'lease_timed_out'],
  [/^queue is overloaded/, 'overloaded'],
  [/ is shutting down$/, 'stopping'],
  [/^queue does not exist/, 'queue_unknown'],
  [/^invalid queue; .* already exists$/, 'queue_exists'],
  [/^dead_queue does not exist/, 'dead_queue_unknown'],
  [/^invalid storage id; .* does not exist$/, 'item_unknown'],
  [/^item\(s\) cannot be .* is not marked as leased$/, 'not_leased'],
  [/^duplicate client id/, 'client_id_waiting'],
]

const BY_STATUS: Readonly<Record<number, QueueErrorCode>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  453: 'refused',
  454: 'try_again',
  455: 'undecodable',
  500: 'internal',
  501: 'not_implemented',
}

export function errorOfReply(status: number, message: string): QueueClientError {
  const named = BY_MESSAGE.find(([pattern]) => pattern.test(message))?.[1]
  return new QueueClientError(named ?? BY_STATUS[status] ?? 'unreadable_reply', status, message)
}

/** Items of one call that may each carry an error: 20 at 12,800 bytes are the 256,000 of a body. */
export const LARGEST_FAILED_BATCH = 20

/** In characters of at most six bytes each in JSON: together less than 12,800. */
const MOST = { errorClass: 100, errorMessage: 500, errorStack: 1_400 }

export type GivenError = Pick<RetryItem, 'errorClass' | 'errorMessage' | 'errorStack'>

/** The thrown error in few words, so that a full batch stays within the limit of a body; nothing when it cannot be read. */
export function givenError(thrown: unknown): GivenError {
  try {
    return described(thrown)
  } catch {
    return {}
  }
}

function described(thrown: unknown): GivenError {
  if (!(thrown instanceof Error)) return { errorMessage: cut(String(thrown), MOST.errorMessage) }
  const { name, message, stack } = thrown
  return {
    errorClass: cut(String(name), MOST.errorClass),
    errorMessage: cut(String(message), MOST.errorMessage),
    ...(typeof stack === 'string' && { errorStack: cut(stack, MOST.errorStack) }),
  }
}

const cut = (text: string, most: number): string =>
  (text.length <= most ? text : `${text.slice(0, most - 1)}…`).toWellFormed()
