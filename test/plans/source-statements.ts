/** Declares the statements of all sources, which an office loads when it opens them, and those of Kafka only where it is told to use it. */
import '../../src/sources/engines/open.ts'
import '../../src/sources/kafka/intake/store.ts'
import '../../src/sources/kafka/queue-reader.ts'
import '../../src/sources/kafka/reassign.ts'
import '../../src/sources/kafka/return/return-path.ts'
import '../../src/sources/kafka/source.ts'
import '../../src/sources/outbox/served/outboxes.ts'
import '../../src/sources/webhooks/webhooks.ts'
