/** Keeps records as the real store promises to: each once, by its place and its bytes. In memory, and a test can take it away. */

import type { RawRecord } from '../../../src/sources/kafka/event.ts'
import type { Gap, Stored } from '../../../src/sources/kafka/intake/partition-counts.ts'
import type { RecordStore } from '../../../src/sources/kafka/intake/store.ts'
import { StoreUnavailable } from '../../../src/store/database.ts'

export class MemoryStore implements RecordStore {
  readonly #kept = new Map<string, RawRecord>()
  readonly gaps: Gap[] = []
  received = 0
  /** How often somebody tried. */
  tries = 0
  isAway = false

  get records(): readonly RawRecord[] {
    return [...this.#kept.values()]
  }

  get size(): number {
    return this.#kept.size
  }

  async store(records: readonly RawRecord[]): Promise<Stored> {
    this.#try()
    const before = this.#kept.size
    for (const record of records) {
      const { topic, partition, offset, timestampMs, key, value } = record
      const id = [topic, partition, offset, timestampMs, hex(key), hex(value)].join()
      if (!this.#kept.has(id)) this.#kept.set(id, record)
    }
    this.received += records.length
    const created = this.#kept.size - before
    return { received: records.length, created, duplicates: records.length - created, reopened: 0 }
  }

  prepare(records: readonly RawRecord[]): () => Promise<Stored> {
    return () => this.store(records)
  }

  async gap(gap: Gap): Promise<void> {
    this.#try()
    this.gaps.push(gap)
  }

  /** The values of a topic as texts, in the order in which they were stored. */
  values(topic: string): readonly (string | null)[] {
    return this.records.filter((record) => record.topic === topic).map(({ value }) => text(value))
  }

  #try(): void {
    this.tries += 1
    if (this.isAway) throw new StoreUnavailable('away')
  }
}

/** Bytes as text; null stays null. */
export const text = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes).toString()

const hex = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes).toString('hex')
