/**
 * `npm run bench -- webhooks`: how fast and how soon messages reach their consumers, and whether that, and what is read all the
 * time, stays so when much waits, somebody hangs, or millions are dead. Every measurement has processes, and a database, of its own.
 */
import { rmSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inChild } from '../fork.ts'
import type { Dialect } from '../letters/sql.ts'
import { machineFacts } from '../machine.ts'
import { table } from '../report.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { type Flags, type Part, readFlags, usage } from './flags.ts'
import { notes } from './notes.ts'
import { writeWebhooks } from './page.ts'
import { hangings, inTurns, nameOfDeliver, nameOfHang } from './plan.ts'
import { partTables, partTitles } from './report.ts'
import { addRun, StoreResults } from './results.ts'
import { type Answers, bulkActs, type Orders } from './task.ts'

const titles: Readonly<Record<Dialect, string>> = { postgres: 'PostgreSQL', sqlite: 'SQLite' }

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchWebhooks(args: readonly string[], signal: AbortSignal): Promise<number> {
  const flags = readFlags(args)
  if (flags === null) {
    console.log(usage)
    return 0
  }
  const root = await mkdtemp(join(tmpdir(), 'bartleby-bench-'))
  // The database server runs as another user when this one is root.
  await chmod(root, 0o755)
  process.once('exit', () => rmSync(root, { recursive: true, force: true }))
  const facts = machineFacts(root)
  const postgres = flags.stores.includes('postgres') ? await startPostgres(root) : null
  if (postgres !== null) facts.push(['PostgreSQL', `${postgres.version}; ${postgres.settings}`])
  const sections: [title: string, text: string][] = []
  try {
    for (const part of flags.parts) {
      const tables: string[] = []
      const failures: string[] = []
      const startMs = performance.now()
      for (const store of flags.stores) {
        const bench = new StoreBench(store, flags, root, postgres, signal)
        tables.push(partTables(part, titles[store], await bench.run(part), flags.sizes))
        failures.push(...bench.failures)
      }
      const minutes = (performance.now() - startMs) / 60_000
      console.error(`${part} took ${minutes.toFixed(1)} minutes`)
      if (failures.length > 0)
        tables.push(`**Failed:**\n${failures.map((failure) => `- ${failure}`).join('\n')}`)
      sections.push([partTitles[part], tables.join('\n\n')])
    }
  } finally {
    await postgres?.stop()
  }
  const about = [table(['machine', ''], facts), notes(flags)].join('\n\n')
  console.log([...sections.map(([title, text]) => `### ${title}\n\n${text}`), about].join('\n\n'))
  if (flags.write) await writeWebhooks(sections, about)
  return sections.some(([, text]) => text.includes('**Failed:**')) ? 1 : 0
}

/** The measurements of one part on one store. One that fails is told, and the others go on. */
class StoreBench {
  readonly failures: string[] = []
  readonly #store: Dialect
  readonly #flags: Flags
  readonly #root: string
  readonly #postgres: PostgresServer | null
  readonly #signal: AbortSignal
  #files = 0

  constructor(
    store: Dialect,
    flags: Flags,
    root: string,
    postgres: PostgresServer | null,
    signal: AbortSignal,
  ) {
    this.#store = store
    this.#flags = flags
    this.#root = root
    this.#postgres = postgres
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
      return await this.#onStore(run)
    } catch (error) {
      if (this.#signal.aborted) throw error
      const reason = error instanceof Error ? error.message : String(error)
      console.error(`FAILED: ${reason}`)
      this.failures.push(`${titles[this.#store]}, ${part}, ${name}: ${reason}`)
      return null
    }
  }

  #onStore<T>(work: (store: string) => Promise<T>): Promise<T> {
    if (this.#store === 'postgres') {
      if (this.#postgres === null) throw new Error('PostgreSQL is not running')
      return this.#postgres.withDatabase(work)
    }
    const file = join(this.#root, `webhooks-${++this.#files}.db`)
    return work(`sqlite:${file}`).finally(() =>
      Promise.all(['', '-wal', '-shm'].map((ending) => rm(file + ending, { force: true }))),
    )
  }
}
