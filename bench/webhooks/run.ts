/**
 * `npm run bench -- webhooks`: how fast and how soon messages reach their consumers, and whether that, and what is read all the
 * time, stays so when much waits, somebody hangs, or millions are dead. Every measurement has processes, and a database, of its own.
 */
import { join } from 'node:path'
import { Grounds, storeTitles } from '../grounds.ts'
import type { Dialect } from '../letters/sql.ts'
import { Measuring } from '../measuring.ts'
import { writeSections } from '../page.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { endOf, failuresOf } from '../tables.ts'
import { type Flags, type Part, readFlags } from './flags.ts'
import { notes } from './notes.ts'
import { hangings, inTurns, nameOfDeliver, nameOfHang } from './plan.ts'
import { partTables, partTitles } from './report.ts'
import { addRun, StoreResults } from './results.ts'
import { type Answers, bulkActs, type Orders } from './task.ts'

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchWebhooks(
  args: readonly string[],
  signal: AbortSignal,
  server: ServerFlags,
): Promise<number> {
  const flags = readFlags(args)
  if (flags === null) return 0
  const grounds = await Grounds.open(flags.stores, server)
  const sections: [title: string, text: string][] = []
  try {
    for (const part of flags.parts) {
      const tables: string[] = []
      const measuring = new Measuring(join(import.meta.dirname, 'child.ts'), signal)
      const startMs = performance.now()
      for (const store of flags.stores) {
        const bench = new StoreBench(store, flags, grounds, measuring)
        tables.push(partTables(part, storeTitles[store], await bench.run(part), flags.sizes))
      }
      const minutes = (performance.now() - startMs) / 60_000
      console.error(`${part} took ${minutes.toFixed(1)} minutes`)
      tables.push(...failuresOf(measuring.failures))
      sections.push([partTitles[part], tables.join('\n\n')])
    }
  } finally {
    await grounds.close()
  }
  const about = endOf(grounds.facts, notes(flags)).join('\n\n')
  console.log([...sections.map(([title, text]) => `### ${title}\n\n${text}`), about].join('\n\n'))
  if (flags.write) await writeSections('Webhooks', 'webhooks', sections, about)
  return sections.some(([, text]) => text.includes('**Failed:**')) ? 1 : 0
}

/** The measurements of one part on one store. */
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

  async run(part: Part): Promise<StoreResults> {
    const { sizes } = this.#flags
    const results = new StoreResults()
    switch (part) {
      case 'deliver':
        for (const consumers of inTurns(sizes, sizes.consumers)) {
          const figure = await this.#measure('deliver', { consumers }, nameOfDeliver(consumers))
          if (figure === null) continue
          addRun(results.deliver, consumers, figure)
          console.error(
            `  ${Math.round(figure.perSecond)}/s, p50 ${figure.way.p50Ms.toFixed(1)} ms, p99 ${figure.way.p99Ms.toFixed(1)} ms`,
          )
        }
        break
      case 'backlog':
        results.backlog = await this.#measure('backlog', {})
        break
      case 'hang':
        for (const hanging of inTurns(sizes, hangings)) {
          const figure = await this.#measure('hang', { hanging }, nameOfHang(hanging))
          if (figure === null) continue
          addRun(results.hang, hanging, figure)
          console.error(`  ${Math.round(figure.perSecond)}/s`)
        }
        break
      case 'dlq-status':
        for (const dead of sizes.dead[this.#store]) {
          const figure = await this.#measure('dlq-status', { dead }, `${dead.toLocaleString('en')} dead`)
          if (figure !== null) results.dlqStatus.set(dead, figure)
        }
        break
      case 'bulk':
        for (const act of bulkActs) {
          const figure = await this.#measure('bulk', { act }, act)
          if (figure !== null) results.bulk.set(act, figure)
        }
        break
    }
    return results
  }

  /** One measurement in processes and on a store of its own; null when it failed. */
  #measure<P extends keyof Answers>(
    part: P,
    order: Orders[P],
    name: string = part,
  ): Promise<Answers[P] | null> {
    const { sizes } = this.#flags
    return this.#measuring.attempt(`${storeTitles[this.#store]}, ${part}, ${name}`, () =>
      this.#grounds.onStore(this.#store, (store) => this.#measuring.child({ part, store, sizes, order })),
    )
  }
}
