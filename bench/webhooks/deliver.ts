/** Broadcast to delivered: as fast as it goes, then the way of single messages at a steady rate, and the floor beside it. */
import { Meter } from '../meter.ts'
import { balance } from './books.ts'
import type { Sizes } from './flags.ts'
import { monotonicMs } from './message-id.ts'
import { postAll } from './posts.ts'
import { onStage, untilDelivered } from './stage.ts'
import type { DeliverFigure } from './task.ts'

const CHANNEL = 'bench'

export async function measureDeliver(store: string, consumers: number, sizes: Sizes): Promise<DeliverFigure> {
  const messages = Math.ceil(sizes.deliveries / consumers)
  const messagesPerSecond = Math.min(sizes.steadyMessages, sizes.steadyDeliveries / consumers)
  let sent = 0
  const figures = await onStage(store, async ({ serverId, broker, receiver, sending }) => {
    await broker.putChannel(CHANNEL)
    for (let at = 0; at < consumers; at++)
      await broker.putConsumer(CHANNEL, `well-${at}`, 'push', `${receiver.url}/well/${at}`)
    await sending.all(CHANNEL, Math.ceil(messages / 10))
    await receiver.untilWell(sending.sent * consumers)
    await untilDelivered(broker, CHANNEL)

    const meter = await Meter.connect(store.startsWith('postgres') ? store : null, [serverId])
    await meter.start()
    const startMs = monotonicMs()
    await sending.all(CHANNEL, messages)
    const answeredMs = monotonicMs()
    const { lastAtMs } = await receiver.untilWell(sending.sent * consumers)
    await untilDelivered(broker, CHANNEL)
    const costs = await meter.finish(messages * consumers)
    await meter.close()

    const first = sending.sent
    await sending.steadily(CHANNEL, messagesPerSecond, sizes.steadySeconds)
    const { twice } = await receiver.untilWell(sending.sent * consumers)
    const way = await receiver.ways([first, sending.sent])
    await untilDelivered(broker, CHANNEL)
    if (twice > 0) throw new Error(`${twice} callbacks came twice`)
    sent = sending.sent
    return {
      messages,
      perSecond: (messages * consumers * 1000) / (lastAtMs - startMs),
      floorPerSecond: await postAll(receiver, consumers, sent, messages * consumers),
      broadcastsPerSecond: (messages * 1000) / (answeredMs - startMs),
      way,
      messagesPerSecond,
      costs,
    }
  })
  const jobs = sent * consumers
  return { ...figures, books: await balance(store, { sent: jobs, delivered: jobs }) }
}
