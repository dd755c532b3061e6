/** "Delivers" messages into the log: to see an outbox at work before there is a receiver. */
import type { Log } from '../../core/log.ts'
import { checkFunctions, checkNames } from '../refusal.ts'
import type { Transport } from '../transport.ts'

/** A transport that writes one line per message; what is in the message is not shown. */
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
