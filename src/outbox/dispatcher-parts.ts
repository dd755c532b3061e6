/** What a dispatcher works with. */
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import type { OutboxMeter } from './meter.ts'
import type { DispatcherSettings } from './options.ts'
import type { MessageTable } from './sql/table.ts'
import type { LocalTransport, Transport } from './transport.ts'

export interface DispatcherParts {
  readonly name: string
  readonly db: Database
  /** Looks at the table; asked again after a failure. */
  readonly table: () => Promise<MessageTable>
  readonly transport: Transport | LocalTransport
  readonly settings: DispatcherSettings
  readonly clock: Clock
  readonly log: Log
  readonly meter: OutboxMeter
  /** Told when rows died, or arrived after they had died: the office has to know. */
  readonly onLetterDue?: () => void
}

/** After an outage: soon, then ever later. */
export const OUTAGE = { baseMs: 100, factor: 2, maxMs: 5_000, jitter: 0.5 }
