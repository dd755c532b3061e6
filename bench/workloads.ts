/** The six workloads. Each uses only the `System` interface and ends with balanced books. */
import { setTimeout } from 'node:timers/promises'
import { Books } from './books.ts'
import { median } from './figures.ts'
import type { Meter } from './meter.ts'
import { type Consumer, type Ending, payload, payloads, type System } from './system.ts'
import { type Measurement, type Sizes, soakWindow, type WorkloadName } from './task.ts'

const batch = 1_000
const warmUpItems = 4_000
const singleCallers = 16
const soakBacklog = 20_000
const latencyPerSecond = 100
const latencyWarmUpSeconds = 2
const settleTimeoutMs = 120_000

interface Bench {
  readonly system: System
  readonly meter: Meter
  readonly books: Books
  readonly sizes: Sizes
}

type Workload = (bench: Bench) => Promise<Measurement>

/** Runs one workload, after a warm-up that every system gets, and reconciles. */
export async function runWorkload(
  name: WorkloadName,
  system: System,
  meter: Meter,
  sizes: Sizes,
): Promise<Measurement> {
  const bench = { system, meter, books: new Books(), sizes }
  if (name !== 'latency') await warmUp(bench)
  const measurement = await workloads[name](bench)
  bench.books.reconcile(await system.counts(), name === 'storm' ? sizes.items : 0)
  return measurement
}

const workloads: Record<WorkloadName, Workload> = {
  async enqueue({ system, meter, books, sizes }) {
    await meter.start()
    await preload(system, books, sizes.items)
    return meter.finish(sizes.items)
  },

  async single({ system, meter, books, sizes }) {
    const before = books.sent
    const endsAtMs = performance.now() + sizes.singleSeconds * 1000
    await meter.start()
    await Promise.all(
      Array.from({ length: singleCallers }, async () => {
        while (performance.now() < endsAtMs) {
          await system.enqueueOne(payload(books.reserve(1)))
          // A store that blocks the thread must not keep the other callers from their turn.
          await Promise.resolve()
        }
      }),
    )
    return meter.finish(books.sent - before)
  },

  drain: (bench) => drainPreloaded(bench, 'complete'),
  storm: (bench) => drainPreloaded(bench, 'fail'),

  async soak({ system, meter, books, sizes }) {
    const perSecond: number[] = new Array(sizes.soakSeconds).fill(0)
    const before = books.delivered
    await meter.start()
    const startMs = performance.now()
    const endsAtMs = startMs + sizes.soakSeconds * 1000
    const consumer = await system.consume({
      ending: 'complete',
      aim: 'throughput',
      seen(n) {
        books.note(n)
        const second = Math.floor((performance.now() - startMs) / 1000)
        if (second < perSecond.length) perSecond[second] = (perSecond[second] ?? 0) + 1
      },
    })
    await Promise.all(
      Array.from({ length: system.batchesInFlight }, async () => {
        while (performance.now() < endsAtMs) {
          if (books.sent - books.delivered < soakBacklog) {
            await system.enqueueBatch(payloads(books.reserve(batch), batch))
            await setTimeout(0)
          } else await setTimeout(1)
        }
      }),
    )
    const measurement = await meter.finish(books.delivered - before)
    await settled(system, books)
    await consumer.stop()
    const window = soakWindow(sizes.soakSeconds)
    const rate = window === 60 ? median : mean
    // The first second is the start-up.
    return {
      ...measurement,
      soak: {
        firstPerSecond: rate(perSecond.slice(1, 1 + window)),
        lastPerSecond: rate(perSecond.slice(-window)),
      },
    }
  },

  async latency({ system, meter, books, sizes }) {
    const total = (sizes.latencySeconds + latencyWarmUpSeconds) * latencyPerSecond
    const sentAtMs = new Float64Array(total)
    const tookMs: number[] = []
    const consumer = await system.consume({
      ending: 'complete',
      aim: 'latency',
      seen(n) {
        books.note(n)
        if (n >= latencyWarmUpSeconds * latencyPerSecond) tookMs.push(performance.now() - (sentAtMs[n] ?? 0))
      },
    })
    await meter.start()
    const startMs = performance.now()
    const calls: Promise<void>[] = []
    for (let next = 0; next < total; next++) {
      const waitMs = startMs + (next * 1000) / latencyPerSecond - performance.now()
      if (waitMs > 0) await setTimeout(waitMs)
      const n = books.reserve(1)
      sentAtMs[n] = performance.now()
      calls.push(system.enqueueOne(payload(n)))
    }
    await Promise.all(calls)
    await settled(system, books)
    const measurement = await meter.finish(total)
    await consumer.stop()
    tookMs.sort((a, b) => a - b)
    return { ...measurement, latency: { p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99) } }
  },
}

async function drainPreloaded({ system, meter, books, sizes }: Bench, ending: Ending): Promise<Measurement> {
  await preload(system, books, sizes.items)
  await meter.calm()
  await meter.start()
  const before = books.delivered
  const consumer = await consumeFromFirst(system, meter, books, ending)
  await settled(system, books)
  const measurement = await meter.finish(books.delivered - before)
  await consumer.stop()
  return measurement
}

/** Starts a consumer; the clock runs from its first delivery or from when it is ready, whichever comes first. */
async function consumeFromFirst(
  system: System,
  meter: Meter,
  books: Books,
  ending: Ending,
): Promise<Consumer> {
  let started = false
  function startClock(): void {
    if (started) return
    started = true
    meter.restartClock()
  }
  const consumer = await system.consume({
    ending,
    aim: 'throughput',
    seen(n) {
      startClock()
      books.note(n)
    },
  })
  startClock()
  return consumer
}

/** Statements prepared, connections open, code compiled: for every system alike. */
async function warmUp({ system, books }: Bench): Promise<void> {
  await preload(system, books, warmUpItems)
  const consumer = await system.consume({ ending: 'complete', aim: 'throughput', seen: (n) => books.note(n) })
  await settled(system, books)
  await consumer.stop()
}

async function preload(system: System, books: Books, count: number): Promise<void> {
  const limit = books.sent + count
  await Promise.all(
    Array.from({ length: system.batchesInFlight }, async () => {
      while (books.sent < limit) {
        const size = Math.min(batch, limit - books.sent)
        await system.enqueueBatch(payloads(books.reserve(size), size))
      }
    }),
  )
}

/** Returns when everything is delivered and the store says that nothing is open. */
async function settled(system: System, books: Books): Promise<void> {
  const limitMs = performance.now() + settleTimeoutMs
  while (books.delivered < books.sent || (await system.counts()).waiting > 0) {
    if (performance.now() > limitMs) {
      const { waiting, dead } = await system.counts()
      throw new Error(
        `not settled in ${settleTimeoutMs} ms: sent ${books.sent}, delivered ${books.delivered}, waiting ${waiting}, dead ${dead}`,
      )
    }
    await setTimeout(2)
  }
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0) / numbers.length
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
