/** The rate and the memory of a dispatcher with few messages before it, and with many. */
import { setTimeout } from 'node:timers/promises'
import { createDispatcher } from '../../src/sources/outbox/index.ts'
import { median } from '../figures.ts'
import type { Sizes } from './flags.ts'
import { loadMessages, makeTables, reconcile, watchEmptiness } from './table.ts'
import type { BacklogFigure } from './task.ts'

/** The stretches whose rate is told. A backlog that is smaller is sent several times. */
const STRETCH = 50_000
/** A point on the way is noted for so many messages. */
const NOTE_EVERY = 500

interface Note {
  readonly atMs: number
  readonly rssMb: number
}

export async function measureBacklog(store: string, backlog: number, sizes: Sizes): Promise<BacklogFigure> {
  await makeTables(store)
  await sendAll(store, sizes.warmUp)
  const repeats = Math.max(1, Math.round(Math.min(STRETCH, sizes.largeBacklog / 2) / backlog))
  const runs: Note[][] = []
  for (let run = 0; run < repeats; run++) runs.push(await sendAll(store, backlog))
  await reconcile(store, sizes.warmUp + repeats * backlog, sizes.warmUp + repeats * backlog)
  const stretch = Math.min(STRETCH, Math.floor(backlog / 2))
  const rateFrom = (first: number) => median(runs.map((notes) => rate(notes, first, first + stretch)))
  const rss = runs.flat().map(({ rssMb }) => rssMb)
  return {
    firstPerSecond: rateFrom(0),
    middlePerSecond: rateFrom(Math.floor((backlog - stretch) / 2)),
    lastPerSecond: rateFrom(backlog - stretch),
    earlyRssMb: rss[Math.floor(rss.length / 10)] ?? Number.NaN,
    lateRssMb: Math.max(...rss.slice(Math.floor(rss.length / 2))),
    peakRssMb: process.resourceUsage().maxRSS / 1024,
  }
}

function rate(notes: readonly Note[], from: number, to: number): number {
  const at = (sent: number) => notes[Math.min(Math.floor(sent / NOTE_EVERY), notes.length - 1)]?.atMs ?? 0
  return ((to - from) * 1_000) / (at(to) - at(from))
}

/** Loads messages and sends them to a function that does nothing; notes the time and the memory on the way. */
async function sendAll(store: string, count: number): Promise<Note[]> {
  await loadMessages(store, count, 'pending')
  const watch = await watchEmptiness(store)
  const { promise: all, resolve } = Promise.withResolvers<void>()
  const notes: Note[] = []
  const note = () => notes.push({ atMs: performance.now(), rssMb: process.memoryUsage.rss() / 2 ** 20 })
  let sent = 0
  const dispatcher = createDispatcher({
    url: store,
    transport: async () => {
      if (sent % NOTE_EVERY === 0) note()
      sent += 1
      if (sent === count) resolve()
    },
  })
  await dispatcher.start()
  await all
  while (!(await watch.isEmpty())) await setTimeout(2)
  note()
  await dispatcher.stop()
  await watch.close()
  if (sent !== count) throw new Error(`${count} messages were sent ${sent} times`)
  return notes
}
