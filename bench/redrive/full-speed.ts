/** All letters planned and sent without a rate: how long it takes, what it writes, and how much memory. */
import { Office } from '../../src/index.ts'
import { Meter } from '../meter.ts'
import { balance } from './books.ts'
import { MemoryWatch } from './memory.ts'
import { carryOut, planAll } from './redriving.ts'
import type { Memory, RunFigure, TaskOf } from './task.ts'

export async function measureRun({ store }: TaskOf<'run'>): Promise<RunFigure> {
  const office = await Office.open({ store })
  const meter = await Meter.connect(store.startsWith('sqlite:') ? null : store, [])
  const watch = new MemoryWatch()
  const atStart = watch.now
  const planAtMs = performance.now()
  await meter.start()
  const { id, counts } = await planAll(office)
  const plan = await meter.finish(counts.planned)
  const runAtMs = performance.now()
  await meter.start()
  const { sent } = (await carryOut(office, id)).counts
  const run = await meter.finish(sent)
  const endMs = performance.now()
  watch.stop()
  const halfMs = (runAtMs + endMs) / 2
  const memory: Memory = {
    atStart,
    ofPlan: watch.peak(planAtMs, runAtMs),
    ofFirstHalf: watch.peak(runAtMs, halfMs),
    ofSecondHalf: watch.peak(halfMs, endMs),
    peak: process.resourceUsage().maxRSS / 1024,
  }
  await meter.close()
  await office.close()
  return {
    letters: sent,
    planSeconds: plan.seconds,
    perSecond: run.perSecond,
    walBytes: run.walBytesPerItem,
    planWalBytes: plan.walBytesPerItem,
    memory,
    books: await balance(store, sent),
  }
}
