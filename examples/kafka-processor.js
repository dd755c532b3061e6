/**
 * A processor for dead events: gives orders the currency that they lack, and drops those of the test suite. In the configuration:
 *
 *   kafka:
 *     processors:
 *       - { match: { service: wps, topic: orders, type: created }, module: ./kafka-processor.js }
 *
 * @import { Processor, When } from 'bartleby'
 */

/**
 * Which of the events that match it is for; left out: all of them.
 *
 * @type {When}
 */
export const when = ({ payload }) => typeof payload === 'object' && payload !== null

/**
 * The same for a dry run and for the real thing. Throwing leaves the event where it is.
 *
 * @type {Processor}
 */
export default function repair({ payload }, { log }) {
  if (payload.test === true) return { action: 'discard', reason: 'an order of the test suite' }
  if (payload.currency !== undefined) return { action: 'publish' }
  log('an order without a currency gets EUR')
  return { action: 'publish', change: { payload: { ...payload, currency: 'EUR' } } }
}
