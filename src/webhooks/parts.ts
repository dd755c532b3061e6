/** What the parts of webhooks work with. */
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Xids } from '../core/xid.ts'
import type { Database } from '../db/database.ts'
import type { Registers } from '../letters/drawers.ts'
import type { WebhookSettings } from './settings.ts'

export interface Parts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly xids: Xids
  readonly registers: Registers
  readonly settings: WebhookSettings
  /** Jobs of these push consumers are ready; called after the commit. */
  readonly onJobs: (consumers: ReadonlySet<number>) => void
}

/** What those need who deliver. */
export type CourierParts = Omit<Parts, 'xids' | 'onJobs'>
