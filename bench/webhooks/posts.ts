/** The floor: the same bodies to the same receiver, as many at the same time, from a loop that keeps nothing. */
import { Pool } from 'undici'
import { payload } from '../system.ts'
import { messageId, monotonicMs } from './message-id.ts'
import type { Receiver } from './receive.ts'

/** What the server has at most under way: in all, and for one consumer. */
const MOST_AT_ONCE = 200
const MOST_PER_CONSUMER = 50

/** Posts a second, to `consumers` callbacks in turn. The numbers of the messages begin with `first`. */
export async function postAll(
  receiver: Receiver,
  consumers: number,
  first: number,
  count: number,
): Promise<number> {
  const connections = Math.min(MOST_AT_ONCE, MOST_PER_CONSUMER * consumers)
  const pool = new Pool(receiver.url, { connections, pipelining: 1 })
  const before = (await receiver.received()).well
  let next = 0
  const lane = async () => {
    for (let at = next++; at < count; at = next++) {
      const n = first + Math.floor(at / consumers)
      const consumer = at % consumers
      const answer = await pool.request({
        method: 'POST',
        path: `/well/${consumer}`,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'Webhook Message Broker',
          'x-broker-channel-id': 'bench',
          'x-broker-consumer-id': `well-${consumer}`,
          'x-broker-message-id': messageId(n),
          'x-broker-consumer-token': 'bench-token',
          'x-broker-message-priority': '0',
          'x-broker-metadata-headers': '',
          'x-request-id': `${n}-${consumer}`,
        },
        body: JSON.stringify(payload(n)),
      })
      await answer.body.dump()
      if (answer.statusCode !== 200) throw new Error(`the receiver answered ${answer.statusCode}`)
    }
  }
  const startMs = monotonicMs()
  await Promise.all(Array.from({ length: Math.min(connections, count) }, lane))
  const { lastAtMs } = await receiver.untilWell(before + count)
  await pool.close()
  return (count * 1000) / (lastAtMs - startMs)
}
