/** Attempts to deliver webhooks, over connections of their own. */
import { addressRanges } from '../../../src/core/address-ranges.ts'
import { later } from '../../../src/core/clock.ts'
import { TestClock } from '../../../src/core/test-clock.ts'
import { Xids, xid } from '../../../src/core/xid.ts'
import { Origins } from '../../../src/outgoing/connections.ts'
import type { Network } from '../../../src/outgoing/connector.ts'
import { type AttemptResult, attempt } from '../../../src/sources/webhooks/courier/attempt.ts'
import type { ClaimedJob, Receiver as Consumer } from '../../../src/sources/webhooks/courier/claim.ts'
import type { Content } from '../../../src/sources/webhooks/courier/contents.ts'
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../../../src/sources/webhooks/settings.ts'
import { closing } from '../receiver.ts'
import { START } from '../store-world.ts'

export const JOB_ID = xid('cv6mqvhqmt5c73e8q1ug')

interface Given {
  readonly url: string
  readonly consumer?: Partial<Consumer>
  readonly content?: Partial<Content>
  readonly delivery?: Partial<WebhookSettings['delivery']>
  readonly signal?: AbortSignal
}

/** A clock that stands still, connections, and attempts over them. */
export function post(network?: Network) {
  const clock = new TestClock()
  clock.freeze(START)
  const xids = new Xids(clock)
  let origins: Origins | undefined
  const send = ({
    url,
    consumer,
    content,
    delivery,
    signal = new AbortController().signal,
  }: Given): Promise<AttemptResult> => {
    const settings = { ...DEFAULT_WEBHOOK_SETTINGS.delivery, ...delivery }
    const ranges = addressRanges(settings.refusedAddresses)
    if ('problem' in ranges) throw new Error(ranges.problem)
    const terms = { most: 10, connectMs: 31_000, refuses: ranges.refuses }
    origins ??= closing(new Origins(clock, network === undefined ? terms : { ...terms, network }))
    const job: ClaimedJob = {
      id: JOB_ID,
      message: xid('cv6mqvhqmt5c73e8q1v0'),
      claim: 'claim',
      claimedUntil: later(START, 60_000_000n),
      createdAt: START,
      priority: 7,
      attempts: 0,
      letter: null,
      isProbe: false,
      receiver: {
        number: 1,
        channelId: 'orders',
        consumerId: 'billing',
        token: 'secret-token',
        callbackUrl: url,
        secrets: [],
        mostAtOnce: null,
        mostPerSecond: null,
        pausedUntil: null,
        ...consumer,
      },
    }
    const message = {
      messageId: 'm1',
      contentType: 'application/json',
      headers: [],
      payload: Buffer.from('{"a":1}'),
      ...content,
    }
    return attempt(job, message, { clock, delivery: settings, origins, requestId: xids.next(), signal })
  }
  return { clock, send, sweep: () => origins?.sweep() }
}
