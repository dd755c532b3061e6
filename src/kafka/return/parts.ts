/** What the return path works with, and how long it may hold an event. */
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Database } from '../../db/database.ts'
import type { EventProcessors, KafkaListener, Publisher } from '../ports.ts'
import type { KafkaSettings } from '../settings.ts'

export interface ReturnParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly settings: KafkaSettings
  readonly publisher: Publisher
  readonly processors: EventProcessors
  readonly listener?: KafkaListener
  /** Unique among all running servers; the same after a restart, when what it held shall be free at once. */
  readonly instance: string
}

/** For what the store takes. Who is later all the same sends nothing any more, or is believed when it knows that it arrived. */
const MARGIN_MS = 10_000

/** How long an event may be held: longer than a processor and a publish may take together. */
export const leaseUs = ({ processorTimeoutMs, publishTimeoutMs }: KafkaSettings): bigint =>
  BigInt(processorTimeoutMs + publishTimeoutMs + MARGIN_MS) * 1_000n
