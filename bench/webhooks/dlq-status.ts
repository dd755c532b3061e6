/** What is read all the time (dead counts, job counts, metrics) and the first page of dead jobs, with few of them and with many. */
import { type Times, timed, timesOf } from '../figures.ts'
import { Meter } from '../meter.ts'
import { balance } from './books.ts'
import { type Layout, loadDead } from './dead-load.ts'
import type { Sizes } from './flags.ts'
import { onStage } from './stage.ts'
import type { DlqStatusFigure } from './task.ts'
import { verifyWebhooks } from './verify.ts'

const layout: Layout = { channels: 4, consumers: 5, type: 'push', failures: 0 }

export async function measureDlqStatus(store: string, dead: number, sizes: Sizes): Promise<DlqStatusFigure> {
  const startMs = performance.now()
  const { consumers } = await loadDead(store, layout, dead)
  const loadSeconds = (performance.now() - startMs) / 1000
  const figures = await onStage(store, async ({ serverId, broker }) => {
    const meter = await Meter.connect(null, [serverId])
    await meter.start()
    const [{ channelId, consumerId } = { channelId: '', consumerId: '' }] = consumers
    const dlq = `/channel/${channelId}/consumer/${consumerId}/dlq`
    const reads: Record<string, Times> = {}
    for (const path of ['/dlq-status', '/job-status', '/metrics', dlq]) {
      const name = path === dlq ? 'first page of dead jobs' : path
      reads[name] = timesOf(await timed(sizes.samples, () => broker.get(path)))
    }
    const counted = (await broker.deadCounts()).reduce((sum, { deadCount }) => sum + deadCount, 0)
    if (counted !== dead) throw new Error(`${dead} jobs are dead, and /dlq-status tells of ${counted}`)
    const { serverPeakRssMb } = await meter.finish(1)
    return { loadSeconds, reads, serverPeakRssMb: serverPeakRssMb ?? Number.NaN }
  })
  await verifyWebhooks(store)
  return { ...figures, books: await balance(store, { sent: dead, dead }) }
}
