/**
 * `npm run bench -- outbox`: what an outbox costs the application that writes it, how fast and how soon messages leave, and
 * whether that stays so when much waits and much is done. Every measurement has a process, and a database, of its own.
 */
import { join } from 'node:path'
import { inChild } from '../fork.ts'
import { Grounds, storeTitles } from '../grounds.ts'
import { installPeers } from '../install.ts'
import type { Dialect } from '../letters/sql.ts'
import { table } from '../report.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { type Flags, readFlags, type Sizes, usage } from './flags.ts'
import { writeOutbox } from './page.ts'
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
  if (flags === null) {
    console.log(usage)
    return 0
  }
  const versions = await installPeers()
  const grounds = await Grounds.open(flags.stores, server)
  const facts = [...grounds.facts]
  if (flags.stores.includes('postgres'))
    facts.push(['peer', `pg-transactional-outbox ${versions['pg-transactional-outbox']}`])
  const tables: string[] = []
  const failures: string[] = []
  try {
    for (const store of flags.stores) {
      const bench = new StoreBench(store, flags, grounds, signal)
      tables.push(storeTables(storeTitles[store], await bench.run(), flags.sizes))
      failures.push(...bench.failures)
    }
  } finally {
    await grounds.close()
  }
  const text = [
    ...tables,
    table(['machine', ''], facts),
    notes(flags.sizes),
    ...(failures.length > 0 ? [`**Failed:**\n${failures.map((failure) => `- ${failure}`).join('\n')}`] : []),
  ].join('\n\n')
  console.log(text)
  if (flags.write) await writeOutbox(text)
  return failures.length === 0 ? 0 : 1
}

/** All measurements on one store. One that fails is told, and the others go on. */
class StoreBench {
  readonly failures: string[] = []
  readonly #store: Dialect
  readonly #flags: Flags
  readonly #grounds: Grounds
  readonly #signal: AbortSignal

  constructor(store: Dialect, flags: Flags, grounds: Grounds, signal: AbortSignal) {
    this.#store = store
    this.#flags = flags
    this.#grounds = grounds
    this.#signal = signal
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
  async #measure<Part extends keyof Answers>(
    part: Part,
    order: Orders[Part],
    name: string = part,
  ): Promise<Answers[Part] | null> {
    const program = join(import.meta.dirname, 'child.ts')
    const run = (store: string) =>
      inChild<Answers[Part]>(
        program,
        { part, store, sizes: this.#flags.sizes, order },
        { signal: this.#signal, onText: (text) => process.stderr.write(text) },
      )
    console.error(`${this.#store}: ${name} …`)
    try {
      return await this.#grounds.onStore(this.#store, run)
    } catch (error) {
      if (this.#signal.aborted) throw error
      const reason = error instanceof Error ? error.message : String(error)
      console.error(`FAILED: ${reason}`)
      this.failures.push(`${storeTitles[this.#store]}, ${name}: ${reason}`)
      return null
    }
  }
}

const notes = (sizes: Sizes): string =>
  [
    `Dispatching: ${count(sizes.messages)} messages with a payload of some 140 bytes that lie there, 16 under way at the same time; median of ${sizes.runs} runs ± half of the range, systems in turns. A peer that needs longer than ${sizes.limitSeconds} s is measured by what it has done by then.`,
    'The bare SQL loop claims, delivers and settles one batch after the other, on the same table with the same indexes, and keeps no other promise. Over HTTP the receiver is a process of its own.',
    `Writer: ${sizes.rounds} pairs of rounds in turns, a transaction is an order and its message; the overhead is the median of the pairs. All statements are prepared.`,
    'A dispatcher that waits is only said to, so that every writer notifies; one that works is a process of its own, with as much to do beside plain inserts.',
    'Commit to delivery: another process commits; from right before the commit to the call of the transport.',
    'Clients and servers share the cores. After every run the books were balanced: added = processed + dead + pending, and over HTTP received = added.',
  ]
    .map((note) => `- ${note}`)
    .join('\n')

const count = (number: number): string => number.toLocaleString('en')
