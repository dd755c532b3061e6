/** The section `queues` of a configuration, which holds for all queues of an office. */
import type { Static } from 'typebox'
import { parseGoDuration, usFromNs } from '../core/duration.ts'
import { type Given, section, text, wholeNumber } from '../core/settings/kinds.ts'
import { readSettings } from '../core/settings/read.ts'

export const QueuesSchema = section('Limits of all queues.', {
  maxProduceBytes: wholeNumber('Largest body of a call that produces.', {
    from: 1,
    to: 64_000_000,
    default: 5_000_000,
  }),
  maxPendingRequests: wholeNumber(
    'Calls of one queue that may wait to be picked up; more are told to try again. What the next transaction has room for counts as picked up.',
    { from: 1, to: 100_000, default: 100 },
  ),
  dedupeWindow: text('How long a dedupe key is remembered.', {
    default: '5m',
    allowed: "a duration above zero such as '30s', '5m' or '24h'",
    is: (duration) => nanosecondsOf(duration) > 0n,
  }),
})

/** Limits that differ from the defaults. */
export type QueueOptions = Given<Static<typeof QueuesSchema>>

/** The limits of queues; refuses what is none. */
export function queueLimits(options: QueueOptions = {}) {
  const { dedupeWindow, ...limits } = readSettings(QueuesSchema, options, 'queues')
  return { ...limits, dedupeWindowUs: usFromNs(nanosecondsOf(dedupeWindow)) }
}

function nanosecondsOf(duration: string): bigint {
  const parsed = parseGoDuration(duration)
  return parsed.ok ? parsed.ns : 0n
}
