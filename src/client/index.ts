/** The exports of `bartleby/client`: runs wherever `fetch` does, and needs nothing else. */
export { bytesOf, type TextEncoding, textOf } from './bytes.ts'
export { QueueClient, type QueueClientOptions } from './client.ts'
export type {
  Consumer,
  ConsumerOptions,
  ConsumerProblem,
  ItemContext,
  ItemHandler,
} from './consume.ts'
export type { Page, PageRequest, WriteOptions } from './envelope.ts'
export {
  DeadLetterError,
  OfficeClientError,
  QueueClientError,
  type QueueErrorCode,
  type TransportCode,
} from './errors.ts'
export type * from './history.ts'
export { HistoryClient } from './history.ts'
export type * from './letter-types.ts'
export { LetterClient } from './letters.ts'
export type * from './redrives.ts'
export { RedriveClient } from './redrives.ts'
export { RunClient, type RunItem, type RunListRequest, type RunState } from './runs.ts'
export type { Time } from './times.ts'
export type { CallOptions, ConnectionOptions, Fetch } from './transport.ts'
export type * from './types.ts'
