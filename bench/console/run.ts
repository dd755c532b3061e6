/**
 * `npm run bench -- console`: how soon the console can be used on a store with many letters, and what it costs the server to have
 * one open while nothing happens.
 */
import { rmSync } from 'node:fs'
import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadLetters } from '../letters/load.ts'
import type { Dialect } from '../letters/sql.ts'
import { machineFacts } from '../machine.ts'
import { writePart } from '../page.ts'
import { table } from '../report.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { type Flags, readFlags, usage } from './flags.ts'
import { launchBrowser, type PageTime, scriptBytes, timePages } from './pages.ts'
import { startServer } from './server.ts'

interface Outcome {
  readonly store: Dialect
  readonly pages: readonly PageTime[]
  readonly scriptBytes: number
  /** Of one core, without a console and with one open. */
  readonly idlePercent: number
  readonly openPercent: number
}

const TITLES: Readonly<Record<Dialect, string>> = { postgres: 'PostgreSQL', sqlite: 'SQLite' }

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchConsole(args: readonly string[], signal: AbortSignal): Promise<number> {
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
  const outcomes: Outcome[] = []
  try {
    for (const store of flags.stores) {
      signal.throwIfAborted()
      console.error(`${store}, ${flags.letters.toLocaleString('en')} letters …`)
      outcomes.push(await withStore(store, root, postgres, (url) => measure(store, url, flags)))
    }
  } finally {
    await postgres?.stop()
  }
  const text = [
    ...outcomes.map((outcome) => outcomeTable(outcome, flags)),
    table(['machine', ''], facts),
  ].join('\n\n')
  console.log(text)
  if (flags.write) {
    const today = new Date().toISOString().slice(0, 10)
    await writePart('Console', `Taken on ${today} with \`npm run bench -- console --write\`.\n\n${text}`)
  }
  return 0
}

function withStore<T>(
  store: Dialect,
  root: string,
  postgres: PostgresServer | null,
  work: (url: string) => Promise<T>,
): Promise<T> {
  if (store === 'sqlite') return work(`sqlite:${join(root, 'console.db')}`)
  if (postgres === null) throw new Error('PostgreSQL is not running')
  return postgres.withDatabase(work)
}

async function measure(
  store: Dialect,
  url: string,
  { letters, loads, idleSeconds }: Flags,
): Promise<Outcome> {
  await loadLetters(url, letters, BigInt(Date.now()) * 1000n)
  const server = await startServer(url)
  const browser = await launchBrowser()
  try {
    const pages = await timePages(browser, server.url, loads)
    const bytes = await scriptBytes(browser, server.url)
    const idlePercent = await server.cpuPercent(idleSeconds)
    const page = await browser.newPage()
    await page.goto(server.url, { waitUntil: 'load' })
    const settleSeconds = 5
    await page.waitForTimeout(settleSeconds * 1_000)
    const openPercent = await server.cpuPercent(idleSeconds)
    return { store, pages, scriptBytes: bytes, idlePercent, openPercent }
  } finally {
    await browser.close()
    await server.stop()
  }
}

function outcomeTable(
  { store, pages, scriptBytes, idlePercent, openPercent }: Outcome,
  flags: Flags,
): string {
  const rows = pages.map(({ name, ms }) => {
    const sorted = [...ms].sort((a, b) => a - b)
    return [
      `${name}: until it can be used`,
      `${whole(sorted[sorted.length >> 1])} ms`,
      `${whole(sorted.at(-1))} ms`,
    ]
  })
  return [
    `### ${TITLES[store]}, ${flags.letters.toLocaleString('en')} letters`,
    table(
      ['', `median of ${flags.loads}`, 'worst'],
      [
        ...rows,
        ['script of the first page, compressed', `${(scriptBytes / 1024).toFixed(0)} KiB`, ''],
        ['server at rest, no console', `${idlePercent.toFixed(2)}% of a core`, ''],
        ['server at rest, a console open', `${openPercent.toFixed(2)}% of a core`, ''],
      ],
    ),
  ].join('\n\n')
}

const whole = (value: number | undefined): string => (value ?? Number.NaN).toFixed(0)
