/** From the commit to the delivery when nobody is busy: another process commits, one message after the other. */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { createDispatcher } from '../../src/sources/outbox/index.ts'
import { type Times, timesOf } from '../figures.ts'
import type { Sizes } from './flags.ts'
import { makeTables, reconcile } from './table.ts'

/** What the writing process tells: when it was about to commit, on the clock that all processes share. */
export interface Committed {
  readonly n: number
  readonly ns: string
}

export async function measureLatency(store: string, { timed, pauseMs }: Sizes): Promise<Times> {
  await makeTables(store)
  const committed = new Map<number, bigint>()
  const delivered = new Map<number, bigint>()
  const { promise: all, resolve, reject } = Promise.withResolvers<void>()
  const wholeCount = timed + WARM_UP
  const seen = () => {
    if (committed.size === wholeCount && delivered.size === wholeCount) resolve()
  }
  const dispatcher = createDispatcher({
    url: store,
    transport: async ({ payload }) => {
      const now = process.hrtime.bigint()
      delivered.set(Number(JSON.parse(Buffer.from(payload).toString()).n), now)
      seen()
    },
  })
  await dispatcher.start()
  const task = JSON.stringify({ store, count: wholeCount, pauseMs })
  const writer = fork(join(import.meta.dirname, 'latency-writer.ts'), [task], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  process.once('exit', () => writer.kill())
  writer.on('message', (message) => {
    // It sends nothing else.
    const { n, ns } = message as Committed
    committed.set(n, BigInt(ns))
    seen()
  })
  writer.once('exit', (code) => {
    if (code !== 0) reject(new Error(`the writing process ended with ${code}`))
  })
  await all
  await dispatcher.stop()
  await reconcile(store, wholeCount, wholeCount)
  const tookMs = [...delivered]
    .filter(([n]) => n >= WARM_UP)
    .map(([n, ns]) => Number(ns - (committed.get(n) ?? ns)) / 1e6)
  return timesOf(tookMs)
}

const WARM_UP = 5
