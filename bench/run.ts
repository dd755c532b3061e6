/**
 * `npm run bench`: Bartleby beside its peers and beside bare SQL, on one machine, in one run, with durable settings.
 * Every run of every workload has a process, and a database, of its own; systems take turns, so that a slow
 * minute of the machine does not hit one of them alone.
 */
import { rmSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Flags, readFlags, usage } from './flags.ts'
import { inChild } from './fork.ts'
import { installPeers } from './install.ts'
import { machineFacts } from './machine.ts'
import { writeQueues } from './page.ts'
import { report } from './report.ts'
import { Results } from './results.ts'
import { type PostgresServer, startPostgres, takeServerFlags } from './servers/postgres.ts'
import { redisVersion, withRedis } from './servers/redis.ts'
import { systems } from './systems/index.ts'
import { type Measurement, soakWindow, type Task } from './task.ts'

const runTimeoutMs = 15 * 60_000

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())

const { server, rest: args } = takeServerFlags(process.argv.slice(2))
const [part = '', ...others] = args
const given = [others, interrupted.signal, server] as const
const parts: Readonly<Record<string, () => Promise<(...of: typeof given) => Promise<number>>>> = {
  letters: async () => (await import('./letters/run.ts')).benchLetters,
  outbox: async () => (await import('./outbox/run.ts')).benchOutbox,
  webhooks: async () => (await import('./webhooks/run.ts')).benchWebhooks,
  kafka: async () => (await import('./kafka/run.ts')).benchKafka,
  redrive: async () => (await import('./redrive/run.ts')).benchRedrive,
  console: async () => (await import('./console/run.ts')).benchConsole,
}
const benchPart = await parts[part]?.()
const flags = benchPart === undefined ? readFlags(args) : null
if (benchPart !== undefined) process.exitCode = await benchPart(...given)
else if (flags === null) console.log(usage)
else process.exitCode = await bench(flags)

async function bench({ systems: asked, workloads, runs, sizes, write }: Flags): Promise<number> {
  const versions = await installPeers()
  const redis = await redisVersion()
  const names = asked.filter((name) => systems[name].store !== 'redis' || redis !== null)
  const results = new Results()
  const root = await mkdtemp(join(tmpdir(), 'bartleby-bench-'))
  // The database server runs as another user when this one is root.
  await chmod(root, 0o755)
  process.once('exit', () => rmSync(root, { recursive: true, force: true }))
  const facts = machineFacts(root)
  const postgres = await startPostgres(root, server)
  try {
    for (const workload of workloads) {
      for (let run = 1; run <= runs; run++) {
        for (const system of names) {
          if (interrupted.signal.aborted) throw new Error('interrupted')
          const folder = join(root, 'run')
          await mkdir(folder)
          try {
            const measurement = await measure({ system, workload, sizes, folder }, postgres)
            results.add(system, workload, measurement)
            console.error(`${workload} ${run}/${runs} ${system}: ${brief(measurement)}`)
          } catch (error) {
            const reason = error instanceof Error ? error.message : String(error)
            results.fail(system, workload, reason)
            console.error(`${workload} ${run}/${runs} ${system} FAILED: ${reason}`)
          }
          await rm(folder, { recursive: true, force: true })
        }
      }
    }
  } finally {
    await postgres.stop()
  }
  facts.push(
    ['PostgreSQL', `${postgres.version}; ${postgres.settings}`],
    [
      'Redis',
      redis === null ? 'no redis-server on the PATH: BullMQ not measured' : `${redis}; appendfsync everysec`,
    ],
    [
      'peers',
      Object.entries(versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(', '),
    ],
  )
  const notes = [
    `${runs} runs each, median ± half of the range; ${sizes.items} items, payload of 140 bytes, no-op consumer; soak ${sizes.soakSeconds} s, first and last ${soakWindow(sizes.soakSeconds)} s compared` +
      `${sizes.idleTransaction ? ' with an idle transaction held open' : ''}; latency at 100 items/s.`,
    'Clients and servers share the cores. Books were balanced after every run: sent = done + dead + waiting, nothing delivered twice.',
    'Redis may lose its last second in a crash; PostgreSQL and SQLite lose nothing that was acknowledged.',
  ]
  const text = report(results, names, facts, notes)
  console.log(text)
  if (write) await writeQueues(text)
  return results.failures.length === 0 ? 0 : 1
}

/** One run of one workload on one system, with fresh stores. */
function measure(
  { system, workload, sizes, folder }: Pick<Task, 'system' | 'workload' | 'sizes' | 'folder'>,
  postgres: PostgresServer,
): Promise<Measurement> {
  const task = { system, workload, sizes, folder, postgresUrl: '', redisPort: 0 }
  const program = join(import.meta.dirname, 'child.ts')
  const run = (whole: Task) =>
    inChild<Measurement>(program, whole, { signal: interrupted.signal, timeoutMs: runTimeoutMs })
  switch (systems[system].store) {
    case 'postgres':
      return postgres.withDatabase((postgresUrl) => run({ ...task, postgresUrl }))
    case 'redis':
      return withRedis(folder, (redisPort) => run({ ...task, redisPort }))
    case 'sqlite':
      return run(task)
  }
}

function brief({ perSecond, seconds, soak, latency, peakRssMb, walBytesPerItem }: Measurement): string {
  const wal = walBytesPerItem === null ? '' : `, ${walBytesPerItem.toFixed(0)} B WAL/item`
  const result =
    latency !== undefined
      ? `p50 ${latency.p50Ms.toFixed(2)} ms, p99 ${latency.p99Ms.toFixed(2)} ms`
      : soak !== undefined
        ? `${soak.firstPerSecond.toFixed(0)} → ${soak.lastPerSecond.toFixed(0)}/s`
        : `${perSecond.toFixed(0)}/s in ${seconds.toFixed(2)} s`
  return `${result}${wal}, RSS ${peakRssMb.toFixed(0)} MB`
}
