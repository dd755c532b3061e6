/** How fast messages leave that lie there already: one system, one receiver, one batch size. */
import { Meter } from '../meter.ts'
import type { Measurement } from '../task.ts'
import { openContender } from './contenders.ts'
import type { Sizes } from './flags.ts'
import { startReceiver } from './receive.ts'
import type { DispatchRun } from './task.ts'

export async function measureDispatch(store: string, run: DispatchRun, sizes: Sizes): Promise<Measurement> {
  const http = run.receiver === 'http' ? await startReceiver() : null
  const contender = await openContender({ ...run, store, http })
  const meter = await Meter.connect(store.startsWith('postgres') ? store : null, [])
  try {
    const limited = run.system.startsWith('peer')
    const send = (count: number) =>
      contender.send(
        count,
        limited ? performance.now() + sizes.limitSeconds * 1_000 : Number.POSITIVE_INFINITY,
      )
    // A peer that is slow would spend its time with what is only a warm-up.
    const warmUp = limited ? 200 : sizes.warmUp
    await contender.load(warmUp)
    await send(warmUp)
    await contender.rest()
    await contender.load(run.backlog)
    await meter.start()
    const sent = await send(run.backlog)
    const measurement = await meter.finish(sent)
    await contender.rest()
    const added = warmUp + run.backlog
    await contender.reconcile(added, added)
    const received = await http?.received()
    if (received !== undefined && received !== added)
      throw new Error(`${added} messages were added and ${received} received`)
    return measurement
  } finally {
    await meter.close()
    await contender.close()
    http?.stop()
  }
}
