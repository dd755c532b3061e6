/** The exports of `bartleby/outbox`: everything an application needs, and nothing of the server. */
export { type Clock, type Instant, instant } from '../../core/clock.ts'
export { BartlebyError } from '../../core/errors.ts'
export type { Log } from '../../core/log.ts'
export { TestClock } from '../../core/test-clock.ts'
export { PermanentError } from '../../core/thrown.ts'
export type { Adapter } from './adapters/adapter.ts'
export {
  drizzleAdapter,
  knexAdapter,
  kyselyAdapter,
  postgresAdapter,
  prismaAdapter,
  sqliteAdapter,
} from './adapters/libraries.ts'
export { pgAdapter } from './adapters/pg.ts'
export { adoptTable } from './adopt/adopt.ts'
export type { AdoptOptions, AdoptReport } from './adopt/report.ts'
export {
  createDispatcher,
  type DispatcherOptions,
  type RunningDispatcher,
} from './dispatcher/create-dispatcher.ts'
export { DISPATCHER_DEFAULTS, type DispatcherSettings } from './dispatcher/options.ts'
export { createInbox, inboxSchema } from './inbox.ts'
export { type MeterSnapshot, OutboxMeter } from './served/meter.ts'
export type { Added, NewMessage, OutboxMessage } from './table/message.ts'
export { outboxSchema } from './table/schema.ts'
export type { Naming, TableOptions } from './table/table-names.ts'
export { type HttpTransportOptions, httpTransport } from './transports/http.ts'
export { type KafkaTransportOptions, kafkaTransport } from './transports/kafka.ts'
export { type LocalTransport, logTransport, RetryLater, type Transport } from './transports/transport.ts'
export { createKey } from './writing/keys.ts'
export { createOutbox, type Outbox } from './writing/writer.ts'
