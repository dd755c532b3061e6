/** What the plans of Kafka on SQLite must be like. */

/** Statements that may sort, and why that is little. */
export const KAFKA_SORTED: Readonly<Record<string, string>> = {}

/** Statements that may read something from end to end, and why that stays small. */
export const KAFKA_SCANNED: Readonly<Record<string, string>> = {}

/** The index that a statement must find its rows by, where it does not name it. The `autoindex` are those of unique columns. */
export const KAFKA_INDEXES: Readonly<Record<string, readonly string[]>> = {
  'INTEGER PRIMARY KEY': [
    'kafka.discardEvents',
    'kafka.events',
    'kafka.forget.kafka_events',
    'kafka.keepLink',
    'kafka.layEvents',
    'kafka.lockEventsToLift',
    'kafka.openSends',
    'kafka.putClaim',
    'kafka.renewEvent',
    'kafka.smallEvents',
    'kafka.writeService',
    'letters.refile',
    'letters.renewContents',
  ],
  'USING PRIMARY KEY': ['kafka.lockPartitions', 'kafka.recordsOn', 'kafka.writePartition'],
  kafka_queue: ['kafka.headOfService', 'kafka.queue', 'kafka.unknownEvents'],
  kafka_queue_of_topic: ['kafka.headOfTopic', 'kafka.queueOfTopic'],
  kafka_same_key: ['kafka.laterSameKey', 'kafka.earlierOpenSameKey'],
  kafka_sends_at: ['kafka.sendsOn'],
  kafka_sends_unplaced: ['kafka.sendsUnplaced'],
  kafka_sends_of_letter: ['kafka.forget.kafka_sends'],
}
