/** A redrive with a rate, in real time: how many letters arrive in its queue in each of two windows. */
import { setTimeout as pause } from 'node:timers/promises'
import { Office } from '../../src/index.ts'
import { openLoader } from '../letters/loader.ts'
import { balance, itemsBetween } from './books.ts'
import { ACTOR, planAll } from './redriving.ts'
import type { RateFigure, TaskOf } from './task.ts'

const WINDOWS = 2
const MARGIN_SECONDS = 1

/** As many letters as it takes, and some more. */
export const lettersOfRate = (rate: number, windowSeconds: number): number =>
  rate * (WINDOWS * windowSeconds + 2 * MARGIN_SECONDS)

export async function measureRate({ store, rate, windowSeconds }: TaskOf<'rate'>): Promise<RateFigure> {
  const office = await Office.open({ store })
  const { id } = await planAll(office, rate)
  const { startedAt } = await office.redrives.start(id, ACTOR)
  if (startedAt === null) throw new Error('a redrive that was started has no start')
  await pause((WINDOWS * windowSeconds + MARGIN_SECONDS) * 1000)
  const { counts } = await office.redrives.cancel(id, ACTOR, null)
  await office.close()
  const loader = await openLoader(store)
  const windows: number[] = []
  const windowUs = BigInt(windowSeconds * 1_000_000)
  for (let fromUs: bigint = startedAt; windows.length < WINDOWS; fromUs += windowUs)
    windows.push(await itemsBetween(loader, fromUs, fromUs + windowUs))
  await loader.close()
  return { windows, expected: rate * windowSeconds, books: await balance(store, counts.sent) }
}
