/** All dead jobs of a consumer purged or requeued at once, and how another consumer fares meanwhile. */
import { setTimeout } from 'node:timers/promises'
import { Meter } from '../meter.ts'
import { balance } from './books.ts'
import type { Broker } from './broker.ts'
import { type Layout, loadDead } from './dead-load.ts'
import type { Sizes } from './flags.ts'
import { monotonicMs } from './message-id.ts'
import { onStage, untilDelivered } from './stage.ts'
import type { Beside, BulkAct, BulkFigure } from './task.ts'
import { verifyWebhooks } from './verify.ts'

/** A pull consumer: what is requeued stays where it is. Every job failed five times before it died. */
const layout: Layout = { channels: 1, consumers: 1, type: 'pull', failures: 5 }

/** Who sends to the other consumer without a pause, and for how long before anything counts. */
const BESIDE_SENDERS = 4
const WARM_UP = 500

export async function measureBulk(store: string, act: BulkAct, sizes: Sizes): Promise<BulkFigure> {
  const { bulk, calmSeconds } = sizes
  const { consumers } = await loadDead(store, layout, bulk)
  const [victim] = consumers
  if (victim === undefined) throw new Error('nobody has dead jobs')
  let well = 0
  const figures = await onStage(store, async ({ serverId, broker, receiver, sending }) => {
    await broker.putChannel('well')
    await broker.putConsumer('well', 'well-0', 'push', `${receiver.url}/well/0`)
    await sending.all('well', WARM_UP, BESIDE_SENDERS)
    const meter = await Meter.connect(null, [serverId])
    await meter.start()

    /** The deliveries to the other consumer while something happens. */
    const watch = async (happening: () => Promise<void>): Promise<Beside & { readonly seconds: number }> => {
      const first = sending.sent
      let span: readonly [number, number] = [0, 0]
      await sending.during('well', BESIDE_SENDERS, async () => {
        const fromMs = monotonicMs()
        await happening()
        span = [fromMs, monotonicMs()]
      })
      await receiver.untilWell(sending.sent)
      const seconds = (span[1] - span[0]) / 1000
      // Those that came in that time; their ways, also of those that came later.
      const { samples } = await receiver.ways([0, sending.sent], span)
      return { perSecond: samples / seconds, way: await receiver.ways([first, sending.sent]), seconds }
    }
    const before = await watch(() => setTimeout(calmSeconds * 1000))
    const rssBeforeMb = (await meter.finish(1)).serverPeakRssMb ?? Number.NaN
    let isAnswered = false
    const { seconds, ...during } = await watch(async () => {
      isAnswered = await actOn(broker, act, victim, bulk)
    })
    const rssAfterMb = (await meter.finish(1)).serverPeakRssMb ?? Number.NaN
    await untilDelivered(broker, 'well')
    well = sending.sent
    return { jobs: bulk, perSecond: bulk / seconds, isAnswered, before, during, rssBeforeMb, rssAfterMb }
  })
  await verifyWebhooks(store)
  const books = await balance(store, {
    sent: bulk + well,
    dead: 0,
    delivered: well,
    removed: act === 'purge' ? bulk : 0,
  })
  return { ...figures, books }
}

/** Purges or requeues, and waits until nothing is dead any more; tells whether the call was answered. */
async function actOn(
  broker: Broker,
  act: BulkAct,
  { channelId, consumerId }: { readonly channelId: string; readonly consumerId: string },
  dead: number,
): Promise<boolean> {
  let isAnswered = true
  if (act === 'purge') {
    const purged = await broker.purge(channelId, consumerId)
    isAnswered = purged !== null
    if (isAnswered && purged !== dead) throw new Error(`${dead} jobs were dead, ${purged} were purged`)
  } else {
    await broker.requeue(channelId, consumerId)
  }
  const left = async () =>
    (await broker.deadCounts()).find((count) => count.channelId === channelId)?.deadCount ?? 0
  while ((await left()) > 0) await setTimeout(100)
  return isAnswered
}
