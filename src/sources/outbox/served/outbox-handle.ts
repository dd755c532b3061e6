/** One outbox as an office or a command sees it: where its table lies, and what is measured about it. */
import { failure } from '../../../core/errors.ts'
import type { Database } from '../../../store/database.ts'
import type { Layout } from '../table/layout.ts'
import type { HealthThresholds } from './health.ts'
import type { OutboxMeter } from './meter.ts'

export interface OutboxHandle {
  /** Unique and lasting: the letters of its dead rows are known by it. */
  readonly name: string
  readonly db: Database
  /** It lies in the office's own store: rows and letters can share a transaction. */
  readonly inStore: boolean
  readonly meter: OutboxMeter
  readonly thresholds: HealthThresholds
  /** Whether a dead row holds back the later ones of its ordering key. */
  readonly onDead: 'hold' | 'skip'
  /** The table as it is; rejects while it cannot be reached or is no outbox. */
  layout(): Promise<Layout>
}

/** The outboxes that an office knows. */
export type OutboxHandles = () => readonly OutboxHandle[]

const known = new WeakMap<OutboxHandle, Layout>()

/** The layout as it is; from now on it is known. */
export async function learnLayout(outbox: OutboxHandle): Promise<Layout> {
  const layout = await outbox.layout()
  known.set(outbox, layout)
  return layout
}

/**
 * The layout as it was last seen; refuses for the moment when nobody has looked yet. For use within transactions of the office's own
 * store: on SQLite a look at the table would wait for the transaction, and the transaction for the look.
 */
export function knownLayout(outbox: OutboxHandle): Layout {
  const layout = known.get(outbox)
  if (layout === undefined) throw failure('letter_outbox_away', { outbox: outbox.name })
  return layout
}
