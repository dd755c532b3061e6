/**
 * `npm run bench -- letters`: what letters cost when there are few and when there are many. Each store with each
 * number of letters has a process, and a database, of its own.
 */
import { join } from 'node:path'
import { inChild } from '../fork.ts'
import { Grounds } from '../grounds.ts'
import { writeLetters } from '../page.ts'
import { table } from '../report.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { type Flags, readFlags, usage } from './flags.ts'
import type { Figure } from './measure.ts'
import { planTexts, type SizeOutcome, storeTable } from './report.ts'
import type { Dialect } from './sql.ts'
import type { Outcome, Task } from './task.ts'

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchLetters(
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
  const tables: string[] = []
  const failures: string[] = []
  try {
    for (const store of flags.stores) {
      const sizes: SizeOutcome[] = []
      for (const letters of flags.counts[store]) {
        console.error(`${store}, ${letters.toLocaleString('en')} letters …`)
        try {
          const fewest = sizes[0]?.outcome?.figures ?? []
          const outcome = await measure(store, letters, fewest, flags, grounds, signal)
          sizes.push({ letters, outcome })
        } catch (error) {
          if (signal.aborted) throw error
          const reason = error instanceof Error ? error.message : String(error)
          console.error(`FAILED: ${reason}`)
          failures.push(`${store}, ${letters.toLocaleString('en')} letters: ${reason}`)
          sizes.push({ letters, outcome: null })
        }
      }
      tables.push(storeTable(store, sizes), ...planTexts(sizes))
    }
  } finally {
    await grounds.close()
  }
  const text = [
    ...tables,
    table(['machine', ''], grounds.facts),
    notes(flags),
    ...(failures.length > 0 ? [`**Failed:**\n${failures.map((failure) => `- ${failure}`).join('\n')}`] : []),
  ].join('\n\n')
  console.log(text)
  if (flags.write) await writeLetters(text)
  return failures.length === 0 ? 0 : 1
}

function measure(
  store: Dialect,
  letters: number,
  fewest: readonly Figure[],
  { expireAt, sizes }: Flags,
  grounds: Grounds,
  signal: AbortSignal,
): Promise<Outcome> {
  const task = { letters, expire: letters === expireAt, fewest, sizes }
  const program = join(import.meta.dirname, 'child.ts')
  return grounds.onStore(store, (url) =>
    inChild<Outcome>(program, { ...task, store: url } satisfies Task, {
      signal,
      onText: (text) => process.stderr.write(text),
    }),
  )
}

const runs = ({ runs: many }: Flags['sizes']): string =>
  many === 1 ? 'One run' : `${many} runs on the same letters, median ± half of the range,`

const notes = ({ sizes }: Flags): string =>
  [
    `${runs(sizes)} of ${sizes.samples} calls of everything that is read, one after the other, and of captures for ${sizes.captureSeconds} s; pages of 50. Letters of 20 places and 200 errors, 60% of them pending, payload of 140 bytes.`,
    `Deaths and completions: ${sizes.stormItems} items a round, by 1,000, four consumers, in turns, three rounds; every death is a letter, its counts and its history.`,
    'Growth is the value with the most letters over that with the fewest. The writer beside the bulk expiry produces single items, one after the other.',
    'Clients and servers share the cores. After every run the counts were compared with COUNT, for every drawer and status.',
  ]
    .map((note) => `- ${note}`)
    .join('\n')
