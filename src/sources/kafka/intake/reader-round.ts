/**
 * Reads all partitions that one broker leads: fetch, decode, store, commit. While one answer is stored, the next is decoded and a third is
 * under way. Storing is tried for as long as it takes, and never out of order.
 */
import type { ConnectionPool } from '@platformatic/kafka'
import { type BackoffPolicy, backoffDelayMs } from '../../../core/backoff.ts'
import type { Log } from '../../../core/log.ts'
import { rest } from '../../../core/waiting.ts'
import type { BrokerLink } from '../../../outgoing/kafka/brokers.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { partitionKey, type RawRecord } from '../event.ts'
import type { KafkaSettings } from '../settings/settings.ts'
import type { Board, PartitionReader } from './intake-status.ts'
import type { Stored } from './partition-counts.ts'
import {
  BatchUnreadable,
  decodeBatches,
  FETCH_KEY,
  FETCH_VERSIONS,
  fetchPartitions,
  nextOffset,
  type PartitionAnswer,
} from './reader-fetch.ts'
import type { Commits } from './reader-group.ts'
import type { PartitionReaders } from './reader-partitions.ts'
import type { RecordStore } from './store.ts'

export interface RoundParts {
  readonly settings: KafkaSettings
  readonly store: RecordStore
  readonly log: Log
  readonly link: BrokerLink
  readonly pool: ConnectionPool
  readonly board: Board
  readonly readers: PartitionReaders
  readonly commits: Commits
  /** A topic is no longer what it was. */
  readonly onGone: () => void
  /** Another broker leads some of these partitions. */
  readonly onMoved: () => Promise<void>
}

/** Together no larger than `fetch_max_bytes`. */
const ANSWERS_IN_MEMORY = 3
/** More makes nothing faster. */
const MOST_FETCH_BYTES = 8_388_608

const GONE = ['UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID', 'INCONSISTENT_TOPIC_ID']
const MOVED = [
  'NOT_LEADER_OR_FOLLOWER',
  'LEADER_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'OFFSET_NOT_AVAILABLE',
  'REPLICA_NOT_AVAILABLE',
  'KAFKA_STORAGE_ERROR',
  'REQUEST_TIMED_OUT',
]

interface Answered {
  readonly reader: PartitionReader
  /** The offset that was asked for. */
  readonly from: bigint
  readonly answer: PartitionAnswer
}

/** Reads until `signal`, or until nothing can be read. Throws when the broker cannot be asked. */
export async function readFrom(
  parts: RoundParts,
  leader: number,
  readers: readonly PartitionReader[],
  signal: AbortSignal,
): Promise<void> {
  const storing = new Storing(parts, signal)
  let turn = 0
  const ask = (): Promise<readonly Answered[] | null> => {
    const open = readers.filter(({ isResting, fetchAt }) => !isResting && fetchAt >= 0n)
    // Brokers fill their answer in this order; the first has room for a batch of any size.
    const first = turn++ % Math.max(1, open.length)
    const asked = fetch(parts, leader, [...open.slice(first), ...open.slice(0, first)])
    asked.catch(() => {})
    return asked
  }
  try {
    for (let asked = ask(); !signal.aborted; ) {
      const answers = await asked
      if (signal.aborted || answers === null) return
      // A reader that moved meanwhile is asked again.
      const valid = answers.filter(({ reader, from }) => reader.fetchAt === from && !reader.isResting)
      for (const { reader, answer, from } of valid) {
        if (answer.errorCode === 0) reader.fetchAt = nextOffset({ from, batches: answer.batches })
      }
      asked = ask()
      await takeIn(parts, storing, valid, signal)
    }
  } finally {
    // The next round goes on where this one ends.
    await storing.idle()
  }
}

/** Null when nothing is left to ask for. */
async function fetch(
  { link, pool, settings }: RoundParts,
  leader: number,
  readers: readonly PartitionReader[],
): Promise<readonly Answered[] | null> {
  if (readers.length === 0) return null
  const connection = await link.to(leader, pool)
  const newest = (await link.versions(connection)).get(FETCH_KEY)?.max ?? 0
  const hasIds = readers.every(({ topicId }) => topicId !== '')
  const version = FETCH_VERSIONS.find((version) => version <= newest && (hasIds || version < 13))
  if (version === undefined) throw new Error('the broker is older than Kafka 2.7')
  const asks = readers.map((reader) => ({ ...reader, reader, offset: reader.fetchAt }))
  const byKey = new Map(asks.map((ask) => [partitionKey(ask), ask]))
  const share = Math.floor(settings.fetchMaxBytes / ANSWERS_IN_MEMORY)
  const maxBytes = Math.max(1, Math.min(MOST_FETCH_BYTES, share))
  const answers = await fetchPartitions(link.library, connection, version, asks, maxBytes)
  return answers.flatMap((answer) => {
    const ask = byKey.get(partitionKey(answer))
    return ask === undefined ? [] : [{ reader: ask.reader, from: ask.offset, answer }]
  })
}

async function takeIn(
  parts: RoundParts,
  storing: Storing,
  answers: readonly Answered[],
  signal: AbortSignal,
): Promise<void> {
  let chunk: Chunk | null = null
  /** False when the round ended first. */
  const flush = async (): Promise<boolean> => {
    const full = chunk
    chunk = null
    return full === null || storing.begin(full)
  }
  for (const { reader, from, answer } of answers) {
    if (answer.errorCode !== 0) {
      if (!(await flush()) || !(await storing.idle())) return
      await onRefused(parts, reader, answer, signal)
      continue
    }
    reader.end = answer.end
    if (chunk !== null && chunk.topic !== reader.topic && !(await flush())) return
    const { topic, partition } = reader
    const { batches, aborted } = answer
    try {
      for (const batch of decodeBatches(parts.link.library, { topic, partition, from, batches, aborted })) {
        for (const record of batch.records) {
          chunk ??= new Chunk(topic)
          chunk.add(reader, record)
          if (chunk.isFull && !(await flush())) return
        }
        chunk ??= new Chunk(topic)
        chunk.reach(reader, batch.next)
      }
      parts.board.partitionTrouble(reader, null)
    } catch (error) {
      if (!(error instanceof BatchUnreadable)) throw error
      if (!(await flush()) || !(await storing.idle())) return
      parts.readers.restAt(reader, error)
    }
  }
  await flush()
}

/** Stores chunks in order; prepares the next meanwhile. */
class Storing {
  readonly #parts: RoundParts
  readonly #signal: AbortSignal
  #underWay: Promise<boolean> = Promise.resolve(true)

  constructor(parts: RoundParts, signal: AbortSignal) {
    this.#parts = parts
    this.#signal = signal
  }

  /** Waits until the chunk before is durable. False when the round ended first. */
  async begin(chunk: Chunk): Promise<boolean> {
    const store = this.#parts.store.prepare(chunk.records)
    if (!(await this.#underWay)) return false
    this.#underWay = this.#keep(chunk, store)
    return true
  }

  /** False when the round ended first. */
  idle(): Promise<boolean> {
    return this.#underWay
  }

  async #keep(chunk: Chunk, store: () => Promise<Stored>): Promise<boolean> {
    const { commits } = this.#parts
    const hasNothing = chunk.records.length === 0 && !this.#signal.aborted
    if (!hasNothing && !(await insist(this.#parts, this.#signal, store))) return false
    for (const [reader, offset] of chunk.reached) {
      if (offset === reader.doneAt) continue
      reader.doneAt = offset
      commits.note({ topic: reader.topic, partition: reader.partition, offset })
    }
    return true
  }
}

async function onRefused(
  parts: RoundParts,
  reader: PartitionReader,
  { errorCode, begin }: PartitionAnswer,
  signal: AbortSignal,
): Promise<void> {
  const code = parts.link.code(errorCode)
  if (code === 'OFFSET_OUT_OF_RANGE') await bridge(parts, reader, begin, signal)
  else if (GONE.includes(code)) parts.onGone()
  else if (MOVED.includes(code)) await parts.onMoved()
  else parts.readers.rest(reader, code)
}

/** Records are gone, or never were: goes on with the first there is. */
async function bridge(
  parts: RoundParts,
  reader: PartitionReader,
  begin: bigint,
  signal: AbortSignal,
): Promise<void> {
  const { topic, partition, doneAt: expected } = reader
  const found = begin >= 0n ? begin : await parts.readers.earliest(reader)
  if (found !== expected) {
    parts.log.warn(
      { topic, partition, expected: String(expected), found: String(found) },
      'records of a Kafka partition are gone; reading goes on with the first there is',
    )
    const gap = { topic, partition, expected, found }
    if (!(await insist(parts, signal, () => parts.store.gap(gap)))) return
  }
  parts.readers.place(reader, found)
  parts.commits.note({ topic, partition, offset: found })
}

/** About 4 MB a call: 1,000 records of the usual 1 KB leave room for larger ones. */
const MOST_RECORDS = 1_000
const MOST_BYTES = 4_194_304

const BACKOFF: BackoffPolicy = { baseMs: 200, factor: 2, maxMs: 10_000, jitter: 0.3 }

/** Records of one topic, and how far they bring each partition. */
class Chunk {
  readonly topic: string
  readonly records: RawRecord[] = []
  readonly reached = new Map<PartitionReader, bigint>()
  #bytes = 0

  constructor(topic: string) {
    this.topic = topic
  }

  get isFull(): boolean {
    return this.records.length >= MOST_RECORDS || this.#bytes >= MOST_BYTES
  }

  add(reader: PartitionReader, record: RawRecord): void {
    this.records.push(record)
    this.reached.set(reader, record.offset + 1n)
    this.#bytes += (record.key?.length ?? 0) + (record.value?.length ?? 0)
    for (const { name, value } of record.headers) this.#bytes += name.length + (value?.length ?? 0)
  }

  /** Counts what is no record too: transaction markers, offsets compacted away. */
  reach(reader: PartitionReader, offset: bigint): void {
    this.reached.set(reader, offset)
  }
}

/** Writes until it works. Nothing is read meanwhile, so nothing is lost or overtakes. False when `signal` came first. */
async function insist(
  { board, log }: RoundParts,
  signal: AbortSignal,
  write: () => Promise<unknown>,
): Promise<boolean> {
  for (let tries = 1; !signal.aborted; tries++) {
    try {
      await write()
      board.trouble('store', null)
      return true
    } catch (error) {
      const isAway = error instanceof StoreUnavailable
      // A mistake of ours. Its message may hold what records hold.
      const name = error instanceof Error ? error.name : 'unknown'
      if (!isAway) log.error({ error: name }, 'dead events could not be stored')
      board.trouble('store', isAway ? 'The store cannot be reached.' : 'The store does not take dead events.')
      await rest(backoffDelayMs(tries, BACKOFF), signal)
    }
  }
  return false
}
