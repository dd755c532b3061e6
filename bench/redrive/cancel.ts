/** How soon a redrive at full speed is cancelled, and whether anything is sent after that. */
import { setTimeout as pause } from 'node:timers/promises'
import { Office } from '../../src/index.ts'
import { openLoader } from '../letters/loader.ts'
import { balance, itemsIn } from './books.ts'
import { ACTOR, planAll, untilUnderWay } from './redriving.ts'
import type { CancelFigure, TaskOf } from './task.ts'

const UNDER_WAY_MS = 100
const LATER_MS = 1_000

/** On PostgreSQL the server that carries it out and another one cancel in turns. */
export async function measureCancels({ store, times }: TaskOf<'cancel'>): Promise<CancelFigure> {
  const office = await Office.open({ store })
  const another = store.startsWith('sqlite:') ? office : await Office.open({ store })
  const loader = await openLoader(store)
  const tookMs: number[] = []
  let [sent, sentAfter] = [0, 0]
  for (let time = 0; time < times; time++) {
    const { id } = await planAll(office)
    await office.redrives.start(id, ACTOR)
    await untilUnderWay(office, id)
    await pause(UNDER_WAY_MS)
    const startMs = performance.now()
    const { counts } = await (time % 2 === 0 ? another : office).redrives.cancel(id, ACTOR, null)
    tookMs.push(performance.now() - startMs)
    sent += counts.sent
    await pause(LATER_MS)
    sentAfter += (await itemsIn(loader)) - sent - sentAfter
  }
  await loader.close()
  if (another !== office) await another.close()
  await office.close()
  return { tookMs, sentAfter, books: await balance(store, sent + sentAfter) }
}
