/** What the parts of this module are to each other. Each is implemented once, in the file that its comment names. */
import type { Instant } from '../../core/clock.ts'
import type { RawRecord, StoredEvent } from './event.ts'

/** What came of storing records; the sum of the last three is the first. */
export interface Stored {
  readonly received: number
  readonly duplicates: number
  readonly created: number
  readonly reopened: number
}

/** Where a partition begins and how far it was committed, when that is no longer there. */
export interface Gap {
  readonly topic: string
  readonly partition: number
  /** The offset that was to be read next. */
  readonly expected: bigint
  /** The offset at which reading goes on. */
  readonly found: bigint
}

/** Keeps records as letters: `intake/store.ts`. */
export interface RecordStore {
  /**
   * Works out what can be known of records before the store is asked. What it gives stores them, each partition's in the order of its
   * offsets, in one transaction: when that returns they are durable, and their offsets may be committed. It throws `StoreUnavailable`
   * when the store is away; nothing is stored then, and it may be called again.
   */
  prepare(records: readonly RawRecord[]): () => Promise<Stored>
  /** Puts on record that offsets of a partition were lost. */
  gap(gap: Gap): Promise<void>
}

/** What a processor wants changed. Left out: as it is. */
export interface Change {
  readonly topic?: string
  readonly type?: string
  readonly key?: string
  /** In the bytes that go out. */
  readonly value?: Uint8Array
  readonly correlationId?: string
}

export type Decision =
  | { readonly action: 'publish'; readonly change: Change }
  | { readonly action: 'discard'; readonly reason: string | null }
  /** It threw, rejected or gave something else. */
  | { readonly action: 'failed'; readonly message: string }
  | { readonly action: 'timeout'; readonly message: string }

/** Runs user code on events: `processors/processors.ts`. Never throws. */
export interface EventProcessors {
  /** The same for a dry run and for the real thing; with no processor that fits, to publish it unchanged. */
  decide(event: StoredEvent): Promise<Decision>
  close(): Promise<void>
}

/** Replaces topic, type, key and value, and keeps processors out. */
export interface Override {
  readonly topic: string
  readonly type: string
  readonly key: string
  /** JSON, byte for byte as it was given; made ASCII before it is published. */
  readonly value: Uint8Array
}

export interface PartitionStanding {
  readonly topic: string
  readonly partition: number
  /** The offset behind the last one that was committed; null when none is known. */
  readonly committed: bigint | null
  /** The offset behind the last record there is; null when it is not known. */
  readonly end: bigint | null
  readonly trouble: string | null
}

/** How intake stands: `intake/reader.ts`. */
export interface IntakeStanding {
  readonly state: 'starting' | 'reading' | 'degraded' | 'stopped'
  /** What is wrong, one sentence each; empty when nothing is. */
  readonly troubles: readonly string[]
  /** Topics of the configuration that the brokers do not have. */
  readonly missingTopics: readonly string[]
  readonly partitions: readonly PartitionStanding[]
  readonly since: Instant
}

/** Told of everything that is counted; the metrics listen: `metrics.ts`. */
export interface KafkaListener {
  stored?(topic: string, stored: Stored): void
  quarantined?(service: string, reasons: readonly string[]): void
  resolved?(
    service: string,
    topic: string,
    what: 'published' | 'discarded_operator' | 'discarded_processor',
  ): void
  trouble?(service: string, what: 'publish_failed' | 'uncertain' | 'refused' | 'processor_failed'): void
  gap?(gap: Gap): void
}
