/**
 * `npm run bench -- webhooks`: how fast and how soon messages reach their consumers, and whether that, and what is read all the
 * time, stays so when much waits, somebody hangs, or millions are dead. Every measurement has processes, and a database, of its own.
 */
import { join } from 'node:path'
import { inChild } from '../fork.ts'
import { Grounds, storeTitles } from '../grounds.ts'
import type { Dialect } from '../letters/sql.ts'
import { writeSections } from '../page.ts'
import { table } from '../report.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { type Flags, type Part, readFlags, usage } from './flags.ts'
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
  if (flags === null) {
    console.log(usage)
    return 0
  }
  const grounds = await Grounds.open(flags.stores, server)
  const sections: [title: string, text: string][] = []
  try {
    for (const part of flags.parts) {
      const tables: string[] = []
      const failures: string[] = []
      const startMs = performance.now()
      for (const store of flags.stores) {
        const bench = new StoreBench(store, flags, grounds, signal)
        tables.push(partTables(part, storeTitles[store], await bench.run(part), flags.sizes))
        failures.push(...bench.failures)
      }
      const minutes = (performance.now() - startMs) / 60_000
      console.error(`${part} took ${minutes.toFixed(1)} minutes`)
      if (failures.length > 0)
        tables.push(`**Failed:**\n${failures.map((failure) => `- ${failure}`).join('\n')}`)
      sections.push([partTitles[part], tables.join('\n\n')])
    }
  } finally {
    await grounds.close()
  }
  const about = [table(['machine', ''], grounds.facts), notes(flags)].join('\n\n')
  console.log([...sections.map(([title, text]) => `### ${title}\n\n${text}`), about].join('\n\n'))
  if (flags.write) await writeSections('Webhooks', 'webhooks', sections, about)
  return sections.some(([, text]) => text.includes('**Failed:**')) ? 1 : 0
}

/** The measurements of one part on one store. One that fails is told, and the others go on. */
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
  async #measure<P extends keyof Answers>(
    part: P,
    order: Orders[P],
    name: string = part,
  ): Promise<Answers[P] | null> {
    const program = join(import.meta.dirname, 'child.ts')
    const run = (store: string) =>
      inChild<Answers[P]>(
        program,
        { part, store, sizes: this.#flags.sizes, order },
        { signal: this.#signal, onText: (text) => process.stderr.write(text) },
      )
    console.error(`${this.#store}: ${part}, ${name} …`)
    try {
      return await this.#grounds.onStore(this.#store, run)
    } catch (error) {
      if (this.#signal.aborted) throw error
      const reason = error instanceof Error ? error.message : String(error)
      console.error(`FAILED: ${reason}`)
      this.failures.push(`${storeTitles[this.#store]}, ${part}, ${name}: ${reason}`)
      return null
    }
  }
}
