/**
 * `npm run bench -- redrive`: how fast many letters are planned and sent back, and what that costs everybody else. Every measurement
 * has a process, and a store, of its own.
 */
import { join } from 'node:path'
import { Grounds, storeTitles } from '../grounds.ts'
import type { Dialect } from '../letters/sql.ts'
import { Measuring } from '../measuring.ts'
import { writeSections } from '../page.ts'
import { serverNodeFlags } from '../servers/bartleby.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { endOf, type Line, lineTable } from '../tables.ts'
import { type Flags, type Part, readFlags } from './flags.ts'
import { lettersOfRate } from './rate.ts'
import { cancelLines, failedLine, keyedLines, liveLines, rateLines, runLines, sourceLines } from './report.ts'
import {
  type Answers,
  type BareFigure,
  type RunFigure,
  type Source,
  type SourceFigure,
  sources,
  type Task,
  type TaskOf,
} from './task.ts'

const KEYS = 1_000
const RATE = 500

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchRedrive(
  args: readonly string[],
  signal: AbortSignal,
  server: ServerFlags,
): Promise<number> {
  const flags = readFlags(args)
  if (flags === null) return 0
  const grounds = await Grounds.open(flags.stores, server)
  const measuring = new Measuring(join(import.meta.dirname, 'child.ts'), signal)
  const bench = new RedriveBench(grounds, flags, measuring)
  const sections: [title: string, text: string][] = []
  try {
    for (const dialect of flags.stores) {
      const title = storeTitles[dialect]
      const lines = await bench.measure(dialect)
      sections.push([title, lineTable(title, lines)])
    }
  } finally {
    await grounds.close()
  }
  const about = endOf(grounds.facts, notes(flags)).join('\n\n')
  console.log([...sections.map(([, text]) => text), about].join('\n\n'))
  if (flags.write) await writeSections('Redrives', 'redrive', sections, about)
  return measuring.failures.length === 0 ? 0 : 1
}

class RedriveBench {
  readonly #grounds: Grounds
  readonly #flags: Flags
  readonly #measuring: Measuring

  constructor(grounds: Grounds, flags: Flags, measuring: Measuring) {
    this.#grounds = grounds
    this.#flags = flags
    this.#measuring = measuring
  }

  /** All parts on one store; a part that failed is a line of its own. */
  async measure(dialect: Dialect): Promise<Line[]> {
    const lines: Line[] = []
    for (const part of this.#flags.parts) {
      const found = await this.#measuring.attempt(`${dialect}, ${part}`, () => this.#part(dialect, part))
      lines.push(...(found ?? [failedLine(part, this.#measuring.failures.at(-1) ?? '')]))
    }
    return lines
  }

  async #part(dialect: Dialect, part: Part): Promise<Line[]> {
    const { runs } = this.#flags
    const { letters, liveSeconds, cancels, windowSeconds } = this.#flags.sizes[dialect]
    switch (part) {
      case 'run': {
        const figures: RunFigure[] = []
        const bare: BareFigure[] = []
        for (let run = 0; run < runs; run++) {
          figures.push(await this.#run(dialect, letters.run, null))
          bare.push(
            await this.#grounds.onStore(dialect, (store) =>
              this.#child({ act: 'bare', store, letters: letters.run }),
            ),
          )
        }
        return runLines(dialect, figures, bare)
      }
      case 'keyed': {
        const figures: RunFigure[] = []
        for (let run = 0; run < runs; run++) figures.push(await this.#run(dialect, letters.keyed, KEYS))
        return keyedLines(KEYS, figures)
      }
      case 'sources': {
        const figures = new Map<Source, SourceFigure>()
        for (const from of sources)
          figures.set(
            from,
            await this.#grounds.onStore(dialect, (store) =>
              this.#child({ act: 'source', store, from, letters: letters.sources }),
            ),
          )
        return sourceLines(letters.sources, figures)
      }
      case 'live':
        return liveLines(
          await this.#onLetters(dialect, letters.live, null, (store) =>
            this.#child({ act: 'live', store, seconds: liveSeconds }),
          ),
        )
      case 'cancel':
        return cancelLines(
          await this.#onLetters(dialect, letters.cancel, null, (store) =>
            this.#child({ act: 'cancel', store, times: cancels }),
          ),
        )
      case 'rate':
        return rateLines(
          RATE,
          windowSeconds,
          await this.#onLetters(dialect, lettersOfRate(RATE, windowSeconds), null, (store) =>
            this.#child({ act: 'rate', store, rate: RATE, windowSeconds }),
          ),
        )
    }
  }

  #run(dialect: Dialect, letters: number, keys: number | null): Promise<RunFigure> {
    return this.#onLetters(dialect, letters, keys, (store) => this.#child({ act: 'run', store }))
  }

  /** Runs `work` with a store that has so many letters, all of them pending. */
  #onLetters<T>(
    dialect: Dialect,
    letters: number,
    keys: number | null,
    work: (store: string) => Promise<T>,
  ): Promise<T> {
    return this.#grounds.onStore(dialect, async (store) => {
      await this.#child({ act: 'load', store, letters, keys })
      return work(store)
    })
  }

  async #child<Act extends Task['act']>(task: TaskOf<Act>): Promise<Answers[Act]> {
    const isOffice = task.act !== 'load' && task.act !== 'bare'
    const figure = await this.#measuring.child<Answers[Act]>(task, isOffice ? serverNodeFlags : [])
    console.error(`  ${task.act}: ${JSON.stringify(figure)}`)
    return figure
  }
}

const notes = ({ runs, sizes }: Flags): readonly string[] => [
  `Letters of 20 errors, all pending, with payloads of 140 bytes, go back to one queue in one call of the library. Loaded by SQL, each measurement in a store and a process of its own, with the memory settings of \`npm start\`; ${runs === 1 ? 'one run of each' : `${runs} runs of each redrive without a rate, median ± half of the range, and what else is told is of the run in the middle`}.`,
  'Bare SQL: one connection, three tables with a primary key each, 1,000 letters to a transaction: copied to a queue, marked, and noted in a history. It asks nothing about a letter and counts nothing.',
  'The goal of a plan is 30 s for 1,000,000 letters, and that of `bartleby verify` 300 s, in proportion.',
  `Live traffic: four callers produce ten items, lease and complete them, without a pause; ${sizes.postgres.liveSeconds} s without a redrive and ${sizes.postgres.liveSeconds} s beside one, in three turns each. On PostgreSQL another server in another process carries the redrive out; on SQLite there is one server.`,
  'Cancelled a tenth of a second after the first letters were seen to be sent; on PostgreSQL by another server every other time. Rates by the times at which the items lie in the queue.',
  'Clients, server and database share the cores. Books: what the redrives tell = items in the queue = letters resolved by a redrive = rows of history; counts = COUNT for every drawer and status. "Verified": `bartleby verify` found every promise kept.',
]
