/** What does not keep to the plan yet. A line goes when its reason does; none may come. */

/** Against the arrow, or from a source to another. */
export const KNOWN_IMPORTS: readonly string[] = []

/** Files that know a source by its name. */
export const KNOWN_NAMES: readonly string[] = [
  'cli/signatures.ts says queues',
  'cli/signatures.ts says engines',
  'history/plain-capture.ts says queues',
  'http/sources.ts imports queues',
  'http/sources.ts imports engines',
  'http/sources.ts imports outbox',
  'http/sources.ts imports webhooks',
  'http/sources.ts imports kafka',
  'letters/intake.ts says queues',
  'letters/report.ts says http',
  'letters/scan.ts says queues',
  'queues/bury.ts says engines',
  'queues/engine-directory.ts says engines',
  'queues/seen-engines.ts says engines',
]

/** Timers of their own. */
export const KNOWN_TIMERS: readonly string[] = [
  'letters/filing.ts',
  'queues/loops.ts',
  'queues/sweeper.ts',
  'sources/kafka/processors/thread.ts',
  'sources/outbox/commit-watch.ts',
  'sources/outbox/letters/clerk.ts',
  'store/announcer.ts',
  'store/fold.ts',
  'store/store-clock.ts',
]
