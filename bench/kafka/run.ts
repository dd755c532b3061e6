/**
 * `npm run bench -- kafka`: how fast dead events are taken in beside a bare loop of the same client, how long a preview takes with many
 * letters, and how long it takes to process one. A real broker on this machine; every measurement has a process and a store of its own.
 */
import { join } from 'node:path'
import { type KafkaBroker, startBroker } from '../../test/kafka/broker.ts'
import { newName, topicsAt } from '../../test/kafka/topics.ts'
import { inChild } from '../fork.ts'
import { Grounds, storeTitles } from '../grounds.ts'
import type { Dialect } from '../letters/sql.ts'
import { writePart } from '../page.ts'
import { table } from '../report.ts'
import { serverNodeFlags } from '../servers/bartleby.ts'
import type { ServerFlags } from '../servers/postgres.ts'
import { timePreviews, timeProcessing, untilTakenIn, withServer } from './calls.ts'
import { deadEvents } from './events.ts'
import { type Flags, readFlags, usage } from './flags.ts'
import { TOPIC } from './load.ts'
import { intakeLines, type Line, previewLine, processLine } from './report.ts'
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
  if (flags === null) {
    console.log(usage)
    return 0
  }
  const broker = await startBroker()
  const grounds = await Grounds.open(flags.stores, server)
  try {
    const bench = new KafkaBench(flags, grounds, broker, signal)
    const lines: Line[] = []
    for (const part of flags.parts) lines.push(...(await bench[part]()))
    const tables = [
      table(['', 'figure', 'beside', 'ratio', 'goal'], lines),
      table(['machine', ''], grounds.facts),
    ]
    const text = tables.join('\n\n')
    console.log(text)
    if (flags.write) {
      const today = new Date().toISOString().slice(0, 10)
      const how = 'see [bench/kafka/README.md](../bench/kafka/README.md) for what is measured and how.'
      await writePart('Kafka', `Taken on ${today} with \`npm run bench -- kafka --write\`; ${how}\n\n${text}`)
    }
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
  readonly #signal: AbortSignal

  constructor(flags: Flags, grounds: Grounds, broker: KafkaBroker, signal: AbortSignal) {
    this.#flags = flags
    this.#grounds = grounds
    this.#broker = broker
    this.#signal = signal
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
    const rate = await inChild<Rate>(join(import.meta.dirname, 'child.ts'), task, {
      signal: this.#signal,
      onText: (text) => process.stderr.write(text),
      ...(task.act === 'intake' && { nodeFlags: serverNodeFlags }),
    })
    console.error(`${task.act}: ${Math.round(rate.perSecond)}/s, ${Math.round(rate.peakRssMb)} MB`)
    return rate
  }
}
