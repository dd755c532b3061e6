/** Kafka: dead events of DLQ topics. */
import type { SourceModule } from '../source-module.ts'
import { kafkaMigration, unplacedSendsMigration } from './schema.ts'

export const kafkaModule: SourceModule = {
  name: 'kafka',
  title: 'Kafka',
  migrations: [kafkaMigration, unplacedSendsMigration],
}
