/** Kafka: dead events of DLQ topics. */
import type { SourceModule } from '../source-module.ts'
import { withAbsolutePaths } from './options.ts'
import { kafkaMigration, unplacedSendsMigration } from './schema.ts'
import { problemsOfKafka } from './settings/rules.ts'
import { KafkaSchema } from './settings/schema.ts'

export const kafkaModule: SourceModule<'kafka', typeof KafkaSchema> = {
  name: 'kafka',
  title: 'Kafka',
  settings: { schema: KafkaSchema, problems: problemsOfKafka, inFolder: withAbsolutePaths },
  migrations: [kafkaMigration, unplacedSendsMigration],
}
