/** How messages leave: to a receiver outside, or within the database in the transaction that settles them. */

import type { Log } from '../../../core/log.ts'
import type { Transaction } from '../../../store/database.ts'
import { checkFunctions, checkNames } from '../refusal.ts'
import type { OutboxMessage } from '../table/message.ts'

/** Delivers messages to where they belong. */
export interface Transport {
  readonly name: string
  /**
   * Resolves when the receiver has the message. Throws otherwise: a `PermanentError` when it never will, a `RetryLater`
   * when it said when, anything else when it may work the next time. Must end soon after `signal` is aborted.
   */
  deliver(message: OutboxMessage, signal: AbortSignal): Promise<void>
  /** Ends connections; nothing is delivered afterwards. */
  close?(): Promise<void>
}

/** Puts messages somewhere in the same database, in one transaction with their settlement: exactly once. */
export interface LocalTransport {
  readonly name: string
  /** Runs `settle` in the transaction in which the messages are put; gives what `settle` gives. */
  transfer<T>(messages: readonly OutboxMessage[], settle: (tx: Transaction) => Promise<T>): Promise<T>
  close?(): Promise<void>
}

export const isLocal = (transport: Transport | LocalTransport): transport is LocalTransport =>
  'transfer' in transport

/** Delivery failed, and the receiver said how long to wait. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater'
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs: number, options?: ErrorOptions) {
    super(message, options)
    this.retryAfterMs = retryAfterMs
  }
}

/** A delivery took longer than it may. */
export class DeliveryTimedOut extends Error {
  override readonly name = 'DeliveryTimedOut'
}

/** The message is no longer this dispatcher's. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost'
}

/** "Delivers" messages into the log, to see an outbox at work before there is a receiver: one line each, without what is in them. */
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
