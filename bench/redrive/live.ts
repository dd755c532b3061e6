/**
 * Live traffic without a redrive and beside one that goes as fast as it may, in turns: the redrive is paused and resumed. On
 * PostgreSQL another server carries it out; a file of SQLite belongs to one server, which does both.
 */
import { Office, type RedriveDetail } from '../../src/index.ts'
import { startAnother } from './another-server.ts'
import { balance } from './books.ts'
import { ACTOR, planAll } from './redriving.ts'
import type { LiveFigure, TaskOf } from './task.ts'
import { LiveTraffic } from './traffic.ts'

const TURNS = 3
const WARM_UP_SECONDS = 2

export async function measureLive({ store, seconds }: TaskOf<'live'>): Promise<LiveFigure> {
  const office = await Office.open({ store })
  const another = store.startsWith('sqlite:') ? null : await startAnother(store)
  await LiveTraffic.createQueue(office)
  const { id } = await planAll(office)
  await new LiveTraffic(office).run(WARM_UP_SECONDS)
  const [alone, beside] = [new LiveTraffic(office), new LiveTraffic(office)]
  let [sent, ms] = [0, 0]
  for (let turn = 0; turn < TURNS; turn++) {
    await alone.run(seconds / TURNS)
    const verb = turn === 0 ? 'start' : 'resume'
    await (another === null ? office.redrives[verb](id, ACTOR) : another.ask(verb, id))
    const startMs = performance.now()
    await beside.run(seconds / TURNS)
    ms += performance.now() - startMs
    sent = (await paused(office, id)).counts.sent
  }
  await another?.stop()
  await office.close()
  return {
    alone: alone.figures,
    beside: beside.figures,
    lettersPerSecond: (sent * 1000) / ms,
    books: await balance(store, sent),
  }
}

/** What ended before the traffic did was not beside it all the time. */
async function paused({ redrives }: Office, id: RedriveDetail['id']): Promise<RedriveDetail> {
  const { state, counts } = await redrives.read(id)
  if (state !== 'running')
    throw new Error(`the redrive of ${counts.planned} letters was ${state} before the traffic ended`)
  return redrives.pause(id, ACTOR, null)
}
