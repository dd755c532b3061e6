/** What the plans of Kafka on PostgreSQL must be like. */

/** Statements that may sort, and why that is little. */
export const KAFKA_SORTED: Readonly<Record<string, string>> = {}

/** Statements that may read something from end to end, and why that stays small. */
export const KAFKA_SCANNED: Readonly<Record<string, string>> = {}

/** The index that a statement must find its rows by, and the last of its columns that must bound the search, if any. */
export const KAFKA_INDEXES: Readonly<Record<string, readonly string[]>> = {
  'kafka_events_pkey letter_id': [
    'kafka.discardEvents',
    'kafka.events',
    'kafka.forget.kafka_events',
    'kafka.hold',
    'kafka.layEvents',
    'kafka.lockEventsToLift',
    'kafka.openSends',
    'kafka.putHold',
    'kafka.renewMany',
    'kafka.smallEvents',
    'kafka.writeService',
  ],
  'kafka_queue order_ts': ['kafka.unknownEvents'],
  'kafka_queue service': ['kafka.headOfService', 'kafka.queue'],
  'kafka_queue_of_topic original_topic': ['kafka.headOfTopic', 'kafka.queueOfTopic'],
  'kafka_same_key same_key': ['kafka.laterSameKey', 'kafka.earlierOpenSameKey'],
  'kafka_in_flight service': ['kafka.inFlight', 'kafka.allInFlight'],
  'kafka_records_pkey record_offset': ['kafka.recordsOn'],
  'kafka_records_dlq_id_key dlq_id': ['kafka.takenIds', 'kafka.letterOfDlqId'],
  'kafka_sends_pkey event_id': [
    'kafka.chain',
    'kafka.countResend',
    'kafka.endSend',
    'kafka.layEvents',
    'kafka.openSends',
    'kafka.putReceipt',
    'kafka.readSend',
    'kafka.sendsOf',
    'kafka.spendSends',
  ],
  'kafka_sends_at published_offset': ['kafka.sendsOn'],
  'kafka_sends_unplaced target': ['kafka.sendsUnplaced'],
  'kafka_sends_of_letter letter_id': ['kafka.forget.kafka_sends'],
  'kafka_chain_pkey letter_id': ['kafka.chain', 'kafka.forget.kafka_chain', 'kafka.valueInChain'],
  'kafka_partitions_pkey partition': ['kafka.lockPartitions', 'kafka.writePartition'],
  'letters_pkey id': ['kafka.renewMany', 'kafka.events', 'kafka.unknownEvents', 'letters.refile'],
  'history_by_correlation created_at': ['kafka.capture'],
}
