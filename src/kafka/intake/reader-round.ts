/**
 * Reads from one broker all partitions that it leads: fetch, decode, store, commit. While the records of an answer are stored, the next
 * answer is under way; so two of them are in memory at most.
 */
import type { ConnectionPool } from '@platformatic/kafka'
import type { Log } from '../../core/log.ts'
import type { BrokerLink } from '../client-link.ts'
import type { KafkaSettings } from '../settings.ts'
import type { Commits } from './commits.ts'
import { BatchUnreadable, decodeBatches, nextOffset } from './reader-batches.ts'
import { type Board, type Lane, laneKey } from './reader-board.ts'
import { FETCH_KEY, FETCH_VERSIONS, fetchPartitions, type PartitionAnswer } from './reader-fetch.ts'
import { Chunk, type KeepParts, keepChunk, keepGap } from './reader-keep.ts'
import type { Lanes } from './reader-lanes.ts'

export interface RoundParts extends KeepParts {
  readonly settings: Pick<KafkaSettings, 'fetchMaxBytes'>
  readonly link: BrokerLink
  /** Connections that wait for records. */
  readonly pool: ConnectionPool
  readonly board: Board
  readonly lanes: Lanes
  readonly commits: Commits
  readonly log: Log
  /** A topic is no longer what it was. */
  readonly onGone: () => void
  /** Another broker leads some of these partitions now. */
  readonly onMoved: () => Promise<void>
}

const MAX_WAIT_MS = 500
/** Of `fetch_max_bytes` each of the two answers in memory gets half, and more than this makes nothing faster. */
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
  readonly lane: Lane
  /** The offset that was asked for. */
  readonly from: bigint
  readonly answer: PartitionAnswer
}

/** Reads until `signal`, or until there is nothing that could be read; throws when the broker cannot be asked. */
export async function readFrom(
  parts: RoundParts,
  leader: number,
  lanes: readonly Lane[],
  signal: AbortSignal,
): Promise<void> {
  let turn = 0
  const ask = (): Promise<readonly Answered[] | null> => {
    const open = lanes.filter(({ isResting, fetchAt }) => !isResting && fetchAt >= 0n)
    // Brokers fill their answer in this order; the first has room for a batch of any size.
    const first = turn++ % Math.max(1, open.length)
    const asked = fetch(parts, leader, [...open.slice(first), ...open.slice(0, first)])
    // It is looked at when its turn has come.
    asked.catch(() => {})
    return asked
  }
  for (let asked = ask(); !signal.aborted; ) {
    const answers = await asked
    if (signal.aborted || answers === null) return
    // Something came between asking and this answer where the places differ: it is asked for again.
    const valid = answers.filter(({ lane, from }) => lane.fetchAt === from && !lane.isResting)
    for (const { lane, answer, from } of valid) {
      if (answer.errorCode === 0) lane.fetchAt = nextOffset({ from, batches: answer.batches })
    }
    asked = ask()
    await takeIn(parts, valid, signal)
  }
}

/** null when nothing is left to ask for. */
async function fetch(
  { link, pool, settings }: RoundParts,
  leader: number,
  lanes: readonly Lane[],
): Promise<readonly Answered[] | null> {
  if (lanes.length === 0) return null
  const connection = await link.to(leader, pool)
  const newest = (await link.versions(connection)).get(FETCH_KEY)?.max ?? 0
  const hasIds = lanes.every(({ topicId }) => topicId !== '')
  const version = FETCH_VERSIONS.find((version) => version <= newest && (hasIds || version < 13))
  if (version === undefined) throw new Error('the broker is older than Kafka 2.7')
  const asks = lanes.map((lane) => ({ lane, from: lane.fetchAt }))
  const byKey = new Map(asks.map((ask) => [laneKey(ask.lane.topic, ask.lane.partition), ask]))
  const answers = await fetchPartitions(
    link.library,
    connection,
    version,
    asks.map(({ lane: { topic, topicId, partition }, from }) => ({
      topic,
      topicId,
      partition,
      offset: from,
    })),
    {
      maxWaitMs: MAX_WAIT_MS,
      maxBytes: Math.max(1, Math.min(MOST_FETCH_BYTES, Math.floor(settings.fetchMaxBytes / 2))),
    },
  )
  return answers.flatMap((answer) => {
    const ask = byKey.get(laneKey(answer.topic, answer.partition))
    return ask === undefined ? [] : [{ ...ask, answer }]
  })
}

async function takeIn(parts: RoundParts, answers: readonly Answered[], signal: AbortSignal): Promise<void> {
  let chunk: Chunk | null = null
  /** False when the round ended before the store took it. */
  const flush = async (): Promise<boolean> => {
    const full = chunk
    chunk = null
    return full === null || keep(parts, full, signal)
  }
  for (const { lane, from, answer } of answers) {
    if (answer.errorCode !== 0) {
      if (!(await flush())) return
      await onRefused(parts, lane, answer, signal)
      continue
    }
    lane.end = answer.end
    if (chunk !== null && chunk.topic !== lane.topic && !(await flush())) return
    const { topic, partition } = lane
    const { batches, aborted } = answer
    try {
      for (const batch of decodeBatches(parts.link.library, { topic, partition, from, batches, aborted })) {
        for (const record of batch.records) {
          chunk ??= new Chunk(topic)
          chunk.add(lane, record)
          if (chunk.isFull && !(await flush())) return
        }
        chunk ??= new Chunk(topic)
        chunk.reach(lane, batch.next)
      }
      parts.board.laneTrouble(lane, null)
    } catch (error) {
      if (!(error instanceof BatchUnreadable)) throw error
      if (!(await flush())) return
      parts.lanes.restAt(lane, error)
    }
  }
  await flush()
}

async function keep(parts: RoundParts, chunk: Chunk, signal: AbortSignal): Promise<boolean> {
  if (!(await keepChunk(parts, chunk, signal))) return false
  for (const [lane, offset] of chunk.reached) {
    if (offset === lane.doneAt) continue
    lane.doneAt = offset
    parts.commits.note({ topic: lane.topic, partition: lane.partition, offset })
  }
  return true
}

async function onRefused(
  parts: RoundParts,
  lane: Lane,
  { errorCode, begin }: PartitionAnswer,
  signal: AbortSignal,
): Promise<void> {
  const code = parts.link.code(errorCode)
  if (code === 'OFFSET_OUT_OF_RANGE') await bridge(parts, lane, begin, signal)
  else if (GONE.includes(code)) parts.onGone()
  else if (MOVED.includes(code)) await parts.onMoved()
  else parts.lanes.rest(lane, code)
}

/** Records were lost, or never were: goes on with the first there is. What was stored before is known to the store. */
async function bridge(parts: RoundParts, lane: Lane, begin: bigint, signal: AbortSignal): Promise<void> {
  const { topic, partition, doneAt: expected } = lane
  const found = begin >= 0n ? begin : await parts.lanes.earliest(lane)
  if (found !== expected) {
    parts.log.warn(
      { topic, partition, expected: String(expected), found: String(found) },
      'records of a Kafka partition are gone; reading goes on with the first there is',
    )
    if (!(await keepGap(parts, { topic, partition, expected, found }, signal))) return
  }
  parts.lanes.place(lane, found)
  parts.commits.note({ topic, partition, offset: found })
}
