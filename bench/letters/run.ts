/**
 * `npm run bench -- letters`: what letters cost when there are few and when there are many. Each store with each
 * number of letters has a process, and a database, of its own.
 */
import { join } from 'node:path'
import { Grounds } from '../grounds.ts'
import { Measuring } from '../measuring.ts'
import { writeBenchmark } from '../page.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { count, endOf } from '../tables.ts'
import { type Flags, readFlags } from './flags.ts'
import { planTexts, type SizeOutcome, storeTable } from './report.ts'
import type { Outcome, Task } from './task.ts'

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchLetters(
  args: readonly string[],
  signal: AbortSignal,
  server: ServerFlags,
): Promise<number> {
  const flags = readFlags(args)
  if (flags === null) return 0
  const grounds = await Grounds.open(flags.stores, server)
  const measuring = new Measuring(join(import.meta.dirname, 'child.ts'), signal)
  const tables: string[] = []
  try {
    for (const store of flags.stores) {
      const sizes: SizeOutcome[] = []
      for (const letters of flags.counts[store]) {
        const fewest = sizes[0]?.outcome?.figures ?? []
        const task = { letters, expire: letters === flags.expireAt, fewest, sizes: flags.sizes }
        const outcome = await measuring.attempt(`${store}, ${count(letters)} letters`, () =>
          grounds.onStore(store, (url) => measuring.child<Outcome>({ ...task, store: url } satisfies Task)),
        )
        sizes.push({ letters, outcome })
      }
      tables.push(storeTable(store, sizes), ...planTexts(sizes))
    }
  } finally {
    await grounds.close()
  }
  const text = [...tables, ...endOf(grounds.facts, notes(flags), measuring.failures)].join('\n\n')
  console.log(text)
  if (flags.write) await writeBenchmark('Letters', 'letters', text)
  return measuring.failures.length === 0 ? 0 : 1
}

const runs = ({ runs: many }: Flags['sizes']): string =>
  many === 1 ? 'One run' : `${many} runs on the same letters, median ± half of the range,`

const notes = ({ sizes }: Flags): readonly string[] => [
  `${runs(sizes)} of ${sizes.samples} calls of everything that is read, one after the other, and of captures for ${sizes.captureSeconds} s; pages of 50. Letters of 20 places and 200 errors, 60% of them pending, payload of 140 bytes.`,
  `Deaths and completions: ${sizes.stormItems} items a round, by 1,000, four consumers, in turns, three rounds; every death is a letter, its counts and its history.`,
  'Growth is the value with the most letters over that with the fewest. The writer beside the bulk expiry produces single items, one after the other.',
  'Clients and servers share the cores. After every run the counts were compared with COUNT, for every drawer and status.',
]
