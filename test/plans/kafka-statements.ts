/** Declares the statements of Kafka, also where no office is told to use it. */
import '../../src/kafka/intake/store.ts'
import '../../src/kafka/queue-reader.ts'
import '../../src/kafka/reassign.ts'
import '../../src/kafka/return/return-path.ts'
import '../../src/kafka/source.ts'
