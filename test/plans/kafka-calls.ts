/** Every statement of Kafka on PostgreSQL with values that make a scan of the tables show, as load-kafka.ts fills them. */
import { dlqId, type EventFacts } from '../../src/sources/kafka/event.ts'
import { bytesOf, packed } from '../../src/sources/kafka/intake/store-incoming.ts'
import { sameKeyOf } from '../../src/sources/kafka/stored-event.ts'
import { record } from '../world/kafka/records.ts'
import { deathNote, deathNotes } from './death-notes.ts'
import { type Argument, type Calls, list, NOW, range } from './explain.ts'
import { KEY, ORIGINAL_TOPIC, SERVICE, TOPIC, uuidOf } from './load-kafka.ts'

const some = range(300, 20)
const letters = list(some)
const minted = list(some.map((n) => uuidOf(2, n)))
const places: readonly Argument[] = [
  list(some.map(() => TOPIC)),
  list(some.map((n) => n % 3)),
  list(some),
  list(some),
  list(some),
]
const sentPlaces: readonly Argument[] = [list(some.map(() => 'retry')), ...places.slice(1)]
const partitions: readonly Argument[] = [list(some.map(() => TOPIC)), list(some)]
/** In the middle of the queue. */
const place: readonly Argument[] = [NOW / 1000n + 500n, TOPIC, 2, 500, 500]
const sameKey: readonly Argument[] = [
  SERVICE,
  ORIGINAL_TOPIC,
  sameKeyOf(Buffer.from(KEY)),
  `\\x${Buffer.from(KEY).toString('hex')}`,
  ...place,
]

const FACTS: EventFacts = {
  service: SERVICE,
  originalTopic: ORIGINAL_TOPIC,
  type: 'created',
  correlationId: null,
  mintedCorrelationId: null,
  originalEventId: null,
  readFrom: null,
  exception: {},
  family: null,
  origin: {},
  attemptsReported: null,
  valueForm: 'json',
  reasons: [],
  warnings: [],
}

/** New records of these numbers, as one statement takes them. */
const records = (count: number): Argument[] =>
  packed(
    range(1, count).map((n) => {
      const made = record({ topic: TOPIC, offset: 10_000_000 + n })
      return {
        record: made,
        facts: FACTS,
        bytes: bytesOf(made, Buffer.alloc(32, n), FACTS),
        sameKey: sameKeyOf(Buffer.from(KEY)),
        // Beyond all that are there.
        dlqId: dlqId(uuidOf(1, 900_000_000 + n)),
        orderTs: made.timestampMs,
      }
    }),
  ).map((value) => (value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value))

/** Calls and their values. */
export const KAFKA_CALLS: Calls = {
  'kafka.addPartitions': partitions,
  'kafka.lockPartitions': partitions,
  'kafka.writePartition': [TOPIC, 7, NOW, 8, 1, 0, 1, 0, 0],
  'kafka.recordsOn': places,
  'kafka.takenIds': [list(some.map((n) => uuidOf(1, n)))],
  'kafka.sendsOf': [minted],
  'kafka.sendsOfChain': [minted],
  'kafka.sendsOn': sentPlaces,
  'kafka.sendsUnplaced': [list(['retry', 'another'])],
  'kafka.capture.alike': [NOW, ...records(1), ...deathNote('kafka')],
  'kafka.capture': [NOW, ...records(5), ...deathNotes(5, 'kafka')],
  'kafka.openSends': [minted],
  'kafka.spendSends': [minted, NOW],
  'kafka.renewMany': [
    ...records(5),
    list(range(300, 5)),
    list(range(1, 5).map((n) => `kafka-${n}`)),
    list(range(300, 5).map((n) => uuidOf(2, n))),
    NOW,
  ],

  'kafka.lockEventsToLift': [letters],
  'kafka.discardEvents': [letters],
  'kafka.layEvents': [letters],
  'kafka.forget.kafka_events': [letters],
  'kafka.forget.kafka_chain': [letters],
  'kafka.forget.kafka_sends': [letters],
  'kafka.chain': [letters],
  'kafka.valueInChain': [300, uuidOf(1, 300)],
  'kafka.writeService': [300, SERVICE, ORIGINAL_TOPIC, '\\x7b7d', 7],
  'kafka.unknownEvents': [...place, 25],

  'kafka.queue': [SERVICE, 20, 5],
  'kafka.queueOfTopic': [SERVICE, ORIGINAL_TOPIC, 20, 5],
  'kafka.events': [letters],
  'kafka.smallEvents': [letters],
  'kafka.placeOfService': ['service-7/', 'service-70'],
  'kafka.letterOfDlqId': [uuidOf(1, 300)],
  'kafka.laterSameKey': sameKey,
  'kafka.earlierOpenSameKey': sameKey,

  'kafka.headOfService': [SERVICE],
  'kafka.headOfTopic': [SERVICE, ORIGINAL_TOPIC],
  'kafka.inFlight': ['flying-7'],
  'kafka.allInFlight': [],
  'kafka.lockService': ['service-7'],
  'kafka.addService': ['service-new'],
  'kafka.claimOnFile': [300],
  'kafka.putClaim': [300, 0, null, null, null, null],
  'lying.markHeld': [300, 0],
  'letters.replaceEdit': [300, 1, '\\x7b7d'],
  'kafka.insertSend': [
    uuidOf(2, 900_000_000),
    300,
    NOW,
    1,
    'retry',
    'digest',
    'actor',
    null,
    null,
    null,
    '\\x5b5d',
  ],
  'kafka.readSend': [uuidOf(2, 300)],
  'kafka.countResend': [uuidOf(2, 300)],
  'kafka.endSend': [uuidOf(2, 300), 1, NOW],
  'kafka.putReceipt': [uuidOf(2, 300), NOW, 1, 300],
}
