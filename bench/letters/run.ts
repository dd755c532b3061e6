/**
 * `npm run bench -- letters`: what letters cost when there are few and when there are many. Each store with each
 * number of letters has a process, and a database, of its own.
 */
import { rmSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inChild } from '../fork.ts'
import { machineFacts } from '../machine.ts'
import { writeLetters } from '../page.ts'
import { table } from '../report.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { type Flags, readFlags, usage } from './flags.ts'
import { type SizeOutcome, storeTable } from './report.ts'
import type { Dialect } from './sql.ts'
import type { Outcome, Task } from './task.ts'

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchLetters(args: readonly string[], signal: AbortSignal): Promise<number> {
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
  const tables: string[] = []
  const failures: string[] = []
  try {
    for (const store of flags.stores) {
      const sizes: SizeOutcome[] = []
      for (const letters of flags.counts[store]) {
        console.error(`${store}, ${letters.toLocaleString('en')} letters …`)
        try {
          sizes.push({ letters, outcome: await measure(store, letters, flags, root, postgres, signal) })
        } catch (error) {
          if (signal.aborted) throw error
          const reason = error instanceof Error ? error.message : String(error)
          console.error(`FAILED: ${reason}`)
          failures.push(`${store}, ${letters.toLocaleString('en')} letters: ${reason}`)
          sizes.push({ letters, outcome: null })
        }
      }
      tables.push(storeTable(titles[store], sizes))
    }
  } finally {
    await postgres?.stop()
  }
  const text = [
    ...tables,
    table(['machine', ''], facts),
    notes(flags),
    ...(failures.length > 0 ? [`**Failed:**\n${failures.map((failure) => `- ${failure}`).join('\n')}`] : []),
  ].join('\n\n')
  console.log(text)
  if (flags.write) await writeLetters(text)
  return failures.length === 0 ? 0 : 1
}

const titles: Readonly<Record<Dialect, string>> = { postgres: 'PostgreSQL', sqlite: 'SQLite' }

function measure(
  store: Dialect,
  letters: number,
  { expireAt, sizes }: Flags,
  root: string,
  postgres: PostgresServer | null,
  signal: AbortSignal,
): Promise<Outcome> {
  const task = { letters, expire: letters === expireAt, sizes }
  const program = join(import.meta.dirname, 'child.ts')
  const run = (whole: Task) =>
    inChild<Outcome>(program, whole, { signal, onText: (text) => process.stderr.write(text) })
  if (store === 'postgres') {
    if (postgres === null) throw new Error('PostgreSQL is not running')
    return postgres.withDatabase((url) => run({ ...task, store: url }))
  }
  const file = join(root, 'letters.db')
  return run({ ...task, store: `sqlite:${file}` }).finally(() =>
    Promise.all(['', '-wal', '-shm'].map((ending) => rm(file + ending, { force: true }))),
  )
}

const notes = ({ sizes }: Flags): string =>
  [
    `${sizes.samples} calls of everything that is read, one after the other; pages of 50. Letters of 20 places and 200 errors, 60% of them pending, payload of 140 bytes.`,
    `Deaths and completions: ${sizes.stormItems} items a round, by 1,000, four consumers, in turns, median of three; every death is a letter, its counts and its history.`,
    'Growth is the value with the most letters over that with the fewest. The writer beside the bulk expiry produces single items, one after the other.',
    'Clients and servers share the cores. After every run the counts were compared with COUNT, for every drawer and status.',
  ]
    .map((note) => `- ${note}`)
    .join('\n')
