/**
 * `npm run bench -- kafka`: how fast dead events are taken in beside a bare loop of the same client, how long a preview takes with many
 * letters, and how long it takes to process one. A real broker on this machine; every measurement has a process and a store of its own.
 */
import { join } from 'node:path'
import { type KafkaBroker, startBroker } from '../../test/world/kafka/broker.ts'
import { newName, topicsAt } from '../../test/world/kafka/topics.ts'
import { Grounds, storeTitles } from '../grounds.ts'
import type { Dialect } from '../letters/sql.ts'
import { Measuring } from '../measuring.ts'
import { writeBenchmark } from '../page.ts'
import { serverNodeFlags } from '../servers/bartleby.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { endOf, type Line, lineTable } from '../tables.ts'
import { timePreviews, timeProcessing, untilTakenIn, withServer } from './calls.ts'
import { deadEvents } from './events.ts'
import { type Flags, readFlags } from './flags.ts'
import { TOPIC } from './load.ts'
import { intakeLines, previewLine, processLine } from './report.ts'
import type { Rate, Task } from './task.ts'

const WRITE_BATCH = 500
/** `timed` makes calls before those that it times. */
const WARM_UP = 30

/** Runs the benchmark that the arguments ask for; gives the exit code. */
export async function benchKafka(
  args: readonly string[],
  signal: AbortSignal,
  server: ServerFlags,
): Promise<number> {
  const flags = readFlags(args)
  if (flags === null) return 0
  const broker = await startBroker()
  const grounds = await Grounds.open(flags.stores, server)
  try {
    const measuring = new Measuring(join(import.meta.dirname, 'child.ts'), signal)
    const bench = new KafkaBench(flags, grounds, broker, measuring)
    const lines: Line[] = []
    for (const part of flags.parts) lines.push(...(await bench[part]()))
    const text = [lineTable('', lines), ...endOf(grounds.facts, [])].join('\n\n')
    console.log(text)
    if (flags.write) await writeBenchmark('Kafka', 'kafka', text)
    return 0
  } finally {
    await grounds.close()
    await broker.dispose()
  }
}

class KafkaBench {
  readonly #flags: Flags
  readonly #grounds: Grounds
  readonly #broker: KafkaBroker
  readonly #measuring: Measuring

  constructor(flags: Flags, grounds: Grounds, broker: KafkaBroker, measuring: Measuring) {
    this.#flags = flags
    this.#grounds = grounds
    this.#broker = broker
    this.#measuring = measuring
  }

  /** The bare loop and offices in turns, all on the same records. */
  async intake(): Promise<Line[]> {
    const { runs, events } = this.#flags.sizes
    const { bootstrap } = this.#broker
    const topic = await this.#filled(events)
    const bare: Rate[] = []
    const offices = new Map<Dialect, Rate[]>(this.#flags.stores.map((store) => [store, []]))
    for (let run = 1; run <= runs; run++) {
      const here = { bootstrap, topic, events }
      bare.push(await this.#child({ act: 'bare', ...here, group: newName('group') }))
      for (const [dialect, rates] of offices) {
        rates.push(
          await this.#grounds.onStore(dialect, (store) =>
            this.#child({ act: 'intake', ...here, store, group: newName('group') }),
          ),
        )
      }
    }
    return [...offices].flatMap(([dialect, rates]) => intakeLines(storeTitles[dialect], rates, bare))
  }

  async preview(): Promise<Line[]> {
    const { letters, samples } = this.#flags.sizes
    const lines: Line[] = []
    for (const dialect of this.#flags.stores) {
      for (const count of letters) {
        const times = await this.#grounds.onStore(dialect, async (store) => {
          await this.#child({ act: 'load', store, letters: count })
          const topics = {
            bootstrap: this.#broker.bootstrap,
            dlq: TOPIC,
            retry: 'bench-retry',
            group: newName('group'),
          }
          return withServer(store, topics, (server) => timePreviews(server, samples))
        })
        lines.push(previewLine(storeTitles[dialect], count, times))
      }
    }
    return lines
  }

  async process(): Promise<Line[]> {
    const { samples } = this.#flags.sizes
    const events = samples + WARM_UP
    const lines: Line[] = []
    for (const dialect of this.#flags.stores) {
      const dlq = await this.#filled(events)
      const retry = await topicsAt(this.#broker.bootstrap).newTopic()
      const topics = { bootstrap: this.#broker.bootstrap, dlq, retry, group: newName('group') }
      const times = await this.#grounds.onStore(dialect, (store) =>
        withServer(store, topics, async (server) => {
          await untilTakenIn(server, events)
          return timeProcessing(server, samples)
        }),
      )
      const published = await topicsAt(this.#broker.bootstrap).endOffset(retry)
      if (Number(published) !== events) throw new Error(`${published} of ${events} events were published`)
      lines.push(processLine(storeTitles[dialect], times))
    }
    return lines
  }

  /** A topic of one partition with so many dead events. */
  async #filled(events: number): Promise<string> {
    const topics = topicsAt(this.#broker.bootstrap)
    const topic = await topics.newTopic()
    for (let from = 0; from < events; from += WRITE_BATCH) {
      await topics.produce(topic, deadEvents(from, Math.min(WRITE_BATCH, events - from)))
    }
    return topic
  }

  async #child(task: Task): Promise<Rate> {
    const rate = await this.#measuring.child<Rate>(task, task.act === 'intake' ? serverNodeFlags : undefined)
    console.error(`${task.act}: ${Math.round(rate.perSecond)}/s, ${Math.round(rate.peakRssMb)} MB`)
    return rate
  }
}
