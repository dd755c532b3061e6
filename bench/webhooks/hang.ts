/** The rate to a healthy consumer, alone or beside consumers that take every callback and never answer. */
import { setTimeout } from 'node:timers/promises'
import { balance } from './books.ts'
import type { Sizes } from './flags.ts'
import { monotonicMs } from './message-id.ts'
import { onStage, untilDelivered } from './stage.ts'
import type { HangFigure } from './task.ts'

/** Short, so that attempts run out of time, and are tried again, while the clock runs. */
const settings = { webhooks: { delivery: { timeoutSeconds: 5 } } }

export async function measureHang(store: string, hanging: number, sizes: Sizes): Promise<HangFigure> {
  const { hangMessages: messages, stuck } = sizes
  let well = 0
  const figures = await onStage(
    store,
    async ({ broker, receiver, sending }) => {
      await broker.putChannel('well')
      await broker.putConsumer('well', 'well-0', 'push', `${receiver.url}/well/0`)
      await broker.putChannel('stuck')
      for (let at = 0; at < hanging; at++)
        await broker.putConsumer('stuck', `hang-${at}`, 'push', `${receiver.url}/hang/${at}`)
      const warmUp = Math.ceil(messages / 10)
      await sending.all('well', warmUp)
      await receiver.untilWell(warmUp)
      // Also when nobody hangs: the channel has no consumer then, and the server as much behind it.
      await sending.all('stuck', stuck)
      const hung = await settledHanging(() => receiver.received())
      const startMs = monotonicMs()
      await sending.all('well', messages)
      const { lastAtMs, twice } = await receiver.untilWell(warmUp + messages)
      await untilDelivered(broker, 'well')
      if (twice > 0) throw new Error(`${twice} callbacks came twice`)
      well = warmUp + messages
      return { perSecond: (messages * 1000) / (lastAtMs - startMs), hung }
    },
    settings,
  )
  const books = await balance(store, { sent: well + hanging * stuck, delivered: well })
  return { ...figures, books }
}

/** How many attempts hang, once no more come. */
async function settledHanging(received: () => Promise<{ readonly hung: number }>): Promise<number> {
  let before = -1
  let now = (await received()).hung
  while (now !== before) {
    await setTimeout(300)
    before = now
    now = (await received()).hung
  }
  return now
}
