/** Transports: to a receiver outside, or within the database in the transaction that settles the message. */

import type { Log } from '../../../core/log.ts'
import type { Transaction } from '../../../store/database.ts'
import { checkFunctions, checkNames } from '../refusal.ts'
import type { OutboxMessage } from '../table/message.ts'

export interface Transport {
  readonly name: string
  /**
   * Resolves when the receiver has the message. Throws otherwise: a `PermanentError` when it never will, a `RetryLater`
   * when it said when, anything else when it may work the next time. Must end soon after `signal` is aborted.
   */
  deliver(message: OutboxMessage, signal: AbortSignal): Promise<void>
  /** Nothing is delivered afterwards. */
  close?(): Promise<void>
}

/** In the same database, in one transaction with the settlement: exactly once. */
export interface LocalTransport {
  readonly name: string
  /** Runs `settle` in its transaction, and gives what that gives. */
  transfer<T>(messages: readonly OutboxMessage[], settle: (tx: Transaction) => Promise<T>): Promise<T>
  close?(): Promise<void>
}

export const isLocal = (transport: Transport | LocalTransport): transport is LocalTransport =>
  'transfer' in transport

/** The receiver said how long to wait. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater'
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs: number, options?: ErrorOptions) {
    super(message, options)
    this.retryAfterMs = retryAfterMs
  }
}

export class DeliveryTimedOut extends Error {
  override readonly name = 'DeliveryTimedOut'
}

export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
}

/** Writes a line for each message, without its content: to see an outbox at work before there is a receiver. */
export function logTransport(options: { readonly log: Log }): Transport {
  checkNames(options, ['log'])
  const { log } = options
  checkFunctions('log', log, ['info'])
  return {
    name: 'log',
    async deliver({ id, key, eventType, tenantId, payload }) {
      log.info({ id, key, eventType, tenantId, bytes: payload.length }, 'outbox message delivered to the log')
    },
  }
}
