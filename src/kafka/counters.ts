/**
 * What this server counted since it started. Names of services and of original topics come from records, which anybody may write:
 * only so many of them have counts of their own, all others share one.
 */
import type { Labels, Sample } from '../observe/exposition.ts'
import type { Gap, KafkaListener, Stored } from './ports.ts'

/** Sets of labels that are counted each by itself. */
const MOST_SETS = 1_000
const OTHERS = '~others'

/** Counts by labels. Those that `shared` names share one value each once there are many. */
class Tally {
  readonly #others: Labels
  readonly #counts = new Map<string, { readonly labels: Labels; value: number }>()

  constructor(...shared: readonly string[]) {
    this.#others = Object.fromEntries(shared.map((name) => [name, OTHERS]))
  }

  add(labels: Labels, amount = 1): void {
    const isKnown = this.#counts.has(keyOf(labels)) || this.#counts.size < MOST_SETS
    const counted = isKnown ? labels : { ...labels, ...this.#others }
    const key = keyOf(counted)
    const count = this.#counts.get(key) ?? { labels: counted, value: 0 }
    count.value += amount
    this.#counts.set(key, count)
  }

  samples(): readonly Sample[] {
    return [...this.#counts.values()]
  }
}

const keyOf = (labels: Labels): string => JSON.stringify(Object.values(labels))

/** Everything that is counted, as samples. */
export type KafkaCounts = Readonly<
  Record<
    | 'received'
    | 'duplicates'
    | 'created'
    | 'reopened'
    | 'quarantined'
    | 'published'
    | 'discarded'
    | 'publishFailures'
    | 'uncertain'
    | 'refused'
    | 'processorFailures'
    | 'gaps',
    readonly Sample[]
  >
>

const TROUBLES = {
  publish_failed: 'publishFailures',
  uncertain: 'uncertain',
  refused: 'refused',
  processor_failed: 'processorFailures',
} as const

export class KafkaCounters implements KafkaListener {
  readonly #tallies = {
    // By DLQ topic: the configuration names all of them.
    received: new Tally(),
    duplicates: new Tally(),
    created: new Tally(),
    reopened: new Tally(),
    gaps: new Tally(),
    quarantined: new Tally('service'),
    published: new Tally('service', 'topic'),
    discarded: new Tally('service', 'topic'),
    publishFailures: new Tally('service'),
    uncertain: new Tally('service'),
    refused: new Tally('service'),
    processorFailures: new Tally('service'),
  } satisfies Record<keyof KafkaCounts, Tally>

  stored(topic: string, { received, duplicates, created, reopened }: Stored): void {
    this.#tallies.received.add({ topic }, received)
    this.#tallies.duplicates.add({ topic }, duplicates)
    this.#tallies.created.add({ topic }, created)
    this.#tallies.reopened.add({ topic }, reopened)
  }

  quarantined(service: string, reasons: readonly string[]): void {
    for (const reason of reasons) this.#tallies.quarantined.add({ service, reason })
  }

  resolved(
    service: string,
    topic: string,
    what: 'published' | 'discarded_operator' | 'discarded_processor',
  ): void {
    if (what === 'published') this.#tallies.published.add({ service, topic })
    else {
      const by = what === 'discarded_operator' ? 'operator' : 'processor'
      this.#tallies.discarded.add({ service, topic, by })
    }
  }

  trouble(service: string, what: keyof typeof TROUBLES): void {
    this.#tallies[TROUBLES[what]].add({ service })
  }

  gap({ topic, partition }: Gap): void {
    this.#tallies.gaps.add({ topic, partition: String(partition) })
  }

  /** The counts as they are now. */
  read(): KafkaCounts {
    const { received, duplicates, created, reopened, gaps, quarantined } = this.#tallies
    const { published, discarded, publishFailures, uncertain, refused, processorFailures } = this.#tallies
    return {
      received: received.samples(),
      duplicates: duplicates.samples(),
      created: created.samples(),
      reopened: reopened.samples(),
      quarantined: quarantined.samples(),
      published: published.samples(),
      discarded: discarded.samples(),
      publishFailures: publishFailures.samples(),
      uncertain: uncertain.samples(),
      refused: refused.samples(),
      processorFailures: processorFailures.samples(),
      gaps: gaps.samples(),
    }
  }
}
