/**
 * `npm run bench -- outbox`: what an outbox costs the application that writes it, how fast and how soon messages leave, and
 * whether that stays so when much waits and much is done. Every measurement has a process, and a database, of its own.
 */
import { join } from 'node:path'
import { Grounds, storeTitles } from '../grounds.ts'
import { installPeers } from '../install.ts'
import type { Dialect } from '../letters/sql.ts'
import { Measuring } from '../measuring.ts'
import { writeBenchmark } from '../page.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { count, endOf } from '../tables.ts'
import { type Flags, readFlags, type Sizes } from './flags.ts'
import { dispatchRuns, nameOf } from './plan.ts'
import { FEW_PROCESSED, storeTables } from './report.ts'
import { StoreResults } from './results.ts'
import type { Answers, Orders } from './task.ts'

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchOutbox(
  args: readonly string[],
  signal: AbortSignal,
  server: ServerFlags,
): Promise<number> {
  const flags = readFlags(args)
  if (flags === null) return 0
  const versions = await installPeers()
  const grounds = await Grounds.open(flags.stores, server)
  const facts = [...grounds.facts]
  if (flags.stores.includes('postgres'))
    facts.push(['peer', `pg-transactional-outbox ${versions['pg-transactional-outbox']}`])
  const tables: string[] = []
  const measuring = new Measuring(join(import.meta.dirname, 'child.ts'), signal)
  try {
    for (const store of flags.stores) {
      const bench = new StoreBench(store, flags, grounds, measuring)
      tables.push(storeTables(storeTitles[store], await bench.run(), flags.sizes))
    }
  } finally {
    await grounds.close()
  }
  const text = [...tables, ...endOf(facts, notes(flags.sizes), measuring.failures)].join('\n\n')
  console.log(text)
  if (flags.write) await writeBenchmark('Outbox', 'outbox', text)
  return measuring.failures.length === 0 ? 0 : 1
}

/** All measurements on one store. */
class StoreBench {
  readonly #store: Dialect
  readonly #flags: Flags
  readonly #grounds: Grounds
  readonly #measuring: Measuring

  constructor(store: Dialect, flags: Flags, grounds: Grounds, measuring: Measuring) {
    this.#store = store
    this.#flags = flags
    this.#grounds = grounds
    this.#measuring = measuring
  }

  async run(): Promise<StoreResults> {
    const { parts, sizes } = this.#flags
    const results = new StoreResults()
    if (parts.includes('writer')) results.writer = (await this.#measure('writer', {})) ?? []
    if (parts.includes('dispatch')) await this.#dispatch(results)
    if (parts.includes('latency')) results.latency = await this.#measure('latency', {})
    if (parts.includes('backlog')) {
      const small = await this.#measure('backlog', { backlog: sizes.smallBacklog })
      const large = await this.#measure('backlog', { backlog: sizes.largeBacklog })
      if (small !== null && large !== null) results.backlog = { small, large }
    }
    if (parts.includes('processed')) {
      const few = await this.#measure('processed', { rows: FEW_PROCESSED })
      const many = await this.#measure('processed', { rows: sizes.processedRows })
      if (few !== null && many !== null) results.reads = { few, many }
    }
    return results
  }

  async #dispatch(results: StoreResults): Promise<void> {
    const { sizes } = this.#flags
    for (let turn = 1; turn <= sizes.runs; turn++) {
      for (const run of dispatchRuns(this.#store, sizes)) {
        const measurement = await this.#measure('dispatch', run, nameOf(run))
        if (measurement === null) continue
        results.addDispatch(run, measurement)
        console.error(`  ${Math.round(measurement.perSecond)}/s`)
      }
    }
  }

  /** One measurement in a process and on a store of its own; null when it failed. */
  #measure<Part extends keyof Answers>(
    part: Part,
    order: Orders[Part],
    name: string = part,
  ): Promise<Answers[Part] | null> {
    const { sizes } = this.#flags
    return this.#measuring.attempt(`${storeTitles[this.#store]}, ${name}`, () =>
      this.#grounds.onStore(this.#store, (store) => this.#measuring.child({ part, store, sizes, order })),
    )
  }
}

const notes = (sizes: Sizes): readonly string[] => [
  `Dispatching: ${count(sizes.messages)} messages with a payload of some 140 bytes that lie there, 16 under way at the same time; median of ${sizes.runs} runs ± half of the range, systems in turns. A peer that needs longer than ${sizes.limitSeconds} s is measured by what it has done by then.`,
  'The bare SQL loop claims, delivers and settles one batch after the other, on the same table with the same indexes, and keeps no other promise. Over HTTP the receiver is a process of its own.',
  `Writer: ${sizes.rounds} pairs of rounds in turns, a transaction is an order and its message; the overhead is the median of the pairs. All statements are prepared.`,
  'A dispatcher that waits is only said to, so that every writer notifies; one that works is a process of its own, with as much to do beside plain inserts.',
  'Commit to delivery: another process commits; from right before the commit to the call of the transport.',
  'Clients and servers share the cores. After every run the books were balanced: added = processed + dead + pending, and over HTTP received = added.',
]
