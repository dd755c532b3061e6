/** For tests only: receivers, and attempts to deliver to them over connections of their own. Call `closeAfterEach` once in a file. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { afterEach } from 'vitest'
import { addressRanges } from '../../src/core/address-ranges.ts'
import { instant, later } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Xids, xid } from '../../src/core/xid.ts'
import { Origins } from '../../src/outgoing/connections.ts'
import type { Network } from '../../src/outgoing/connector.ts'
import { type AttemptResult, attempt } from '../../src/sources/webhooks/courier/attempt.ts'
import type { ClaimedJob, Receiver as Consumer } from '../../src/sources/webhooks/courier/claim.ts'
import type { Content } from '../../src/sources/webhooks/courier/contents.ts'
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../../src/sources/webhooks/settings.ts'
import { httpReceiver, type Received, type Receiver, rawReceiver } from './stub-receiver.ts'

const NOW = instant(1_800_000_000_000_000n)
export const JOB_ID = xid('cv6mqvhqmt5c73e8q1ug')
const opened: { close(): Promise<void> }[] = []

/** Closes what the tests of a file have opened. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close()
  })
}

const closing = <T extends { close(): Promise<void> }>(each: T): T => {
  opened.unshift(each)
  return each
}
export const receiving = async (
  answer: (response: ServerResponse, request: Received) => void,
): Promise<Receiver> => closing(await httpReceiver(answer))
export const receivingRaw = async (answer: (socket: Socket) => void): Promise<Receiver> =>
  closing(await rawReceiver(answer))
export const answering = (status: number, headers: Record<string, string> = {}, body = '') =>
  receiving((response) => void response.writeHead(status, headers).end(body))

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
  clock.freeze(NOW)
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
      claimedUntil: later(NOW, 60_000_000n),
      createdAt: NOW,
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
