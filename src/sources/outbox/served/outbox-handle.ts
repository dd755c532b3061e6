/** One outbox as the office sees it: its table, and what is measured about it. */
import { failure } from '../../../core/errors.ts'
import type { Database } from '../../../store/database.ts'
import type { Layout } from '../table/layout.ts'
import type { HealthThresholds } from './health.ts'
import type { OutboxMeter } from './meter.ts'

export interface OutboxHandle {
  /** Unique and lasting: it names the letters of its dead rows. */
  readonly name: string
  readonly db: Database
  /** In the office's own store: rows and letters share transactions. */
  readonly inStore: boolean
  readonly meter: OutboxMeter
  readonly thresholds: HealthThresholds
  readonly onDead: 'hold' | 'skip'
  /** Rejects while the table cannot be reached or is no outbox. */
  layout(): Promise<Layout>
}

export type OutboxHandles = () => readonly OutboxHandle[]

const known = new WeakMap<OutboxHandle, Layout>()

/** Reads the layout, and remembers it for `knownLayout`. */
export async function learnLayout(outbox: OutboxHandle): Promise<Layout> {
  const layout = await outbox.layout()
  known.set(outbox, layout)
  return layout
}

/**
 * The layout as last read; refuses for the moment when nobody has read it. For transactions of the office's own store:
 * on SQLite reading the table would wait for the transaction, and the transaction for the reading.
 */
export function knownLayout(outbox: OutboxHandle): Layout {
  const layout = known.get(outbox)
  if (layout === undefined) throw failure('letter_outbox_away', { outbox: outbox.name })
  return layout
}
