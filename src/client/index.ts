/** What `import … from 'bartleby/client'` gives: runs wherever `fetch` does, and needs nothing else. */
export { textOf } from './bytes.ts'
export { QueueClient, type QueueClientOptions } from './client.ts'
export type {
  Consumer,
  ConsumerOptions,
  ConsumerProblem,
  ItemContext,
  ItemHandler,
} from './consume.ts'
export { DeadLetterError, QueueClientError, type QueueErrorCode } from './errors.ts'
export type { Time } from './times.ts'
export type { CallOptions, Fetch } from './transport.ts'
export type * from './types.ts'
