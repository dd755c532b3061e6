/** Declares the statements of Kafka, also where no office is told to use it. */
import '../../src/sources/kafka/intake/store.ts'
import '../../src/sources/kafka/queue-reader.ts'
import '../../src/sources/kafka/reassign.ts'
import '../../src/sources/kafka/return/return-path.ts'
import '../../src/sources/kafka/source.ts'
