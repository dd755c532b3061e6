/** What `import … from 'bartleby'` gives. */

export { type Clock, type Instant, instant, later } from './core/clock.ts'
export { BartlebyError, ERRORS, type ErrorCode } from './core/errors.ts'
export type { Log } from './core/log.ts'
export { ConfigError } from './core/settings/config-error.ts'
export { SystemClock } from './core/system-clock.ts'
export { TestClock } from './core/test-clock.ts'
export { PermanentError } from './core/thrown.ts'
export type { Recorded, RunReport } from './history/intake.ts'
export type * from './letters/letter.ts'
export type { Letters } from './letters/letters.ts'
export type { LetterFilter } from './letters/lists/filter.ts'
export type { CaptureResult } from './letters/reports/intake.ts'
export type { ReportedFailure as FailureReport, ReportedTime } from './letters/reports/report.ts'
export { migrateStore, Office, type OfficeOptions } from './office.ts'
export { type EngineDefinition, EngineDirectory } from './queues/engines/engine-directory.ts'
export type { EngineSettings } from './queues/engines/settings.ts'
export type * from './queues/queue.ts'
export type { Queues } from './queues/queues.ts'
export type * from './redrive/redrive.ts'
export type { Redrives } from './redrive/redrives.ts'
export type { HeaderRules, PatchOperation, Recipe } from './redrive/repair/recipe.ts'
export type { Engine } from './sources/engines/engine.ts'
export type { EngineMessage, EngineOptions, RunContext } from './sources/engines/options.ts'
export { EngineStopped, HandlerTimedOut, LeaseLost } from './sources/engines/run.ts'
export type {
  DeadEvent,
  Processor,
  ProcessorContext,
  Result,
  When,
} from './sources/kafka/processors/processor.ts'
export type { KafkaOptions } from './sources/kafka/settings/options.ts'
export type { WebhookOptions, WebhookSettings } from './sources/webhooks/settings.ts'
export { StoreUnavailable } from './store/database.ts'
export { StoreTooNew } from './store/migrations.ts'
