/** Kafka: dead events of DLQ topics. */
import type { OfficeParts, SourceModule } from '../source-module.ts'
import { KAFKA_OPERATIONS } from './event.ts'
import { kafkaInvariants } from './invariants.ts'
import type { Kafka } from './kafka.ts'
import { kafkaMigration, unplacedSendsMigration } from './schema.ts'
import { servedKafka } from './served.ts'
import { type KafkaOptions, kafkaConnection, kafkaSettings, kafkaWarnings } from './settings/options.ts'
import { problemsOfKafka } from './settings/rules.ts'
import { KafkaSchema } from './settings/schema.ts'
import { kafkaLetterSource } from './source.ts'

export interface KafkaFace {
  /** Null unless enabled. */
  readonly kafka: Kafka | null
}

export const kafkaModule: SourceModule<'kafka', typeof KafkaSchema, KafkaOptions, KafkaFace> = {
  name: 'kafka',
  title: 'Kafka',
  settings: { schema: KafkaSchema, problems: problemsOfKafka },
  kind: {
    words: {
      capture: KAFKA_OPERATIONS.received,
      reopen: KAFKA_OPERATIONS.reopened,
      retry: KAFKA_OPERATIONS.published,
      discard: KAFKA_OPERATIONS.discarded,
      refile: KAFKA_OPERATIONS.reassigned,
    },
    operations: Object.values(KAFKA_OPERATIONS),
    sendsOutside: true,
  },
  invariants: kafkaInvariants,
  migrations: [kafkaMigration, unplacedSendsMigration],
  offers: (options) => ({ brokers: kafkaConnection(options ?? {}) }),
  async open(parts, options) {
    const kafka = await openKafka(parts, options ?? {})
    return {
      // Without Kafka too: its letters can be discarded everywhere.
      letters: kafkaLetterSource({
        returnWay: () => kafka?.letterReturn ?? null,
        discarded: (service, topic) => kafka?.countDiscarded(service, topic),
      }),
      services: kafka === null ? [] : [kafka],
      face: { kafka },
      ...servedKafka(kafka),
    }
  },
}

async function openKafka(parts: OfficeParts, options: KafkaOptions): Promise<Kafka | null> {
  const settings = kafkaSettings(options)
  for (const warning of kafkaWarnings(options))
    parts.log.warn({ warning }, 'the configuration of kafka is worth a second look')
  if (settings === null) return null
  // Loaded on use: most offices have no Kafka, and it is a third of the program.
  const { Kafka } = await import('./kafka.ts')
  const { store, clock, log, registers, runs, letters, redriveOf } = parts
  return Kafka.open({
    db: store.db,
    clock,
    log,
    registers,
    runs,
    numbers: letters.numbers,
    redriveOf,
    settings,
  })
}
