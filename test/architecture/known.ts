/** What does not keep to the plan yet. A line goes when its reason does; none may come. */

/** Against the arrow, or from a source to another. */
export const KNOWN_IMPORTS: readonly string[] = []

/** Files that know a source by its name. */
export const KNOWN_NAMES: readonly string[] = [
  'http/sources.ts imports queues',
  'http/sources.ts imports engines',
  'http/sources.ts imports outbox',
  'http/sources.ts imports webhooks',
  'http/sources.ts imports kafka',
]

/** Timers of their own. */
export const KNOWN_TIMERS: readonly string[] = [
  'sources/outbox/commit-watch.ts',
  'sources/outbox/letters/clerk.ts',
]
