/**
 * `npm run bench -- console`: how soon the console can be used on a store with many letters, and what it costs the server to have
 * one open while nothing happens.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Grounds, storeTitles } from '../grounds.ts'
import { loadLetters } from '../letters/load.ts'
import type { Dialect } from '../letters/sql.ts'
import { cpuSecondsOf } from '../meter.ts'
import { writeBenchmark } from '../page.ts'
import { type BartlebyServer, startBartleby } from '../servers/bartleby.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { endOf, judged, table } from '../tables.ts'
import { type Flags, readFlags } from './flags.ts'
import { launchBrowser, type PageTime, scriptBytes, timePages } from './pages.ts'

/** The median of opening the first page. */
const MOST_MS = 700

interface Outcome {
  readonly store: Dialect
  readonly pages: readonly PageTime[]
  readonly scriptBytes: number
  /** Of one core, without a console and with one open. */
  readonly idlePercent: number
  readonly openPercent: number
}

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchConsole(
  args: readonly string[],
  signal: AbortSignal,
  server: ServerFlags,
): Promise<number> {
  const flags = readFlags(args)
  if (flags === null) return 0
  const grounds = await Grounds.open(flags.stores, server)
  const outcomes: Outcome[] = []
  try {
    for (const store of flags.stores) {
      signal.throwIfAborted()
      console.error(`${store}, ${flags.letters.toLocaleString('en')} letters …`)
      outcomes.push(await grounds.onStore(store, (url) => measure(store, url, flags)))
    }
  } finally {
    await grounds.close()
  }
  const tables = outcomes.map((outcome) => outcomeTable(outcome, flags))
  const text = [...tables, ...endOf(grounds.facts, [])].join('\n\n')
  console.log(text)
  if (flags.write) await writeBenchmark('Console', 'console', text)
  return 0
}

async function measure(
  store: Dialect,
  url: string,
  { letters, loads, idleSeconds }: Flags,
): Promise<Outcome> {
  await loadLetters(url, letters, BigInt(Date.now()) * 1000n)
  const server = await startBartleby(url)
  const browser = await launchBrowser()
  try {
    const pages = await timePages(browser, server.url, loads)
    const bytes = await scriptBytes(browser, server.url)
    const idlePercent = await cpuPercent(server, idleSeconds)
    const page = await browser.newPage()
    await page.goto(server.url, { waitUntil: 'load' })
    const settleSeconds = 5
    await page.waitForTimeout(settleSeconds * 1_000)
    const openPercent = await cpuPercent(server, idleSeconds)
    return { store, pages, scriptBytes: bytes, idlePercent, openPercent }
  } finally {
    await browser.close()
    await server.stop()
  }
}

/** The share of one core that a server takes over the next `seconds`. */
async function cpuPercent({ pid }: BartlebyServer, seconds: number): Promise<number> {
  if (pid === undefined) throw new Error('the server has no process')
  const before = cpuSecondsOf(pid)
  await pause(seconds * 1_000)
  return ((cpuSecondsOf(pid) - before) / seconds) * 100
}

function outcomeTable(
  { store, pages, scriptBytes, idlePercent, openPercent }: Outcome,
  flags: Flags,
): string {
  const rows = pages.map(({ name, ms }) => {
    const sorted = [...ms].sort((a, b) => a - b)
    const middle = sorted[sorted.length >> 1] ?? Number.NaN
    return [
      `${name}: until it can be used`,
      `${whole(middle)} ms`,
      `${whole(sorted.at(-1))} ms`,
      name.startsWith('overview') ? judged(`≤ ${MOST_MS} ms`, middle <= MOST_MS) : '',
    ]
  })
  return [
    `### ${storeTitles[store]}, ${flags.letters.toLocaleString('en')} letters`,
    table(
      ['', `median of ${flags.loads}`, 'worst', 'goal'],
      [
        ...rows,
        ['script of the first page, compressed', `${(scriptBytes / 1024).toFixed(0)} KiB`, '', ''],
        ['server at rest, no console', `${idlePercent.toFixed(2)}% of a core`, '', ''],
        ['server at rest, a console open', `${openPercent.toFixed(2)}% of a core`, '', ''],
      ],
    ),
  ].join('\n\n')
}

const whole = (value: number | undefined): string => (value ?? Number.NaN).toFixed(0)
