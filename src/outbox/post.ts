/** One outbox as an office or a command sees it: where its table lies, and what is measured about it. */
import type { Database } from '../db/database.ts'
import type { HealthThresholds } from './health.ts'
import type { Layout } from './layout.ts'
import type { OutboxMeter } from './meter.ts'

export interface OutboxPost {
  /** Unique and lasting: the letters of its dead rows are known by it. */
  readonly name: string
  readonly db: Database
  /** It lies in the office's own store: rows and letters can share a transaction. */
  readonly inStore: boolean
  /** This office delivers its messages, and does not only watch over them. */
  readonly dispatches: boolean
  readonly meter: OutboxMeter
  readonly thresholds: HealthThresholds
  /** Whether a dead row holds back the later ones of its ordering key. */
  readonly onDead: 'hold' | 'skip'
  /** The table as it is; rejects while it cannot be reached or is no outbox. */
  layout(): Promise<Layout>
}
