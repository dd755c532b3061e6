/** The partitions that this member reads, each in its lane: where it is, how far, and what keeps it from going on. */
import { troubleOf } from '../client.ts'
import type { BrokerLink } from '../client-link.ts'
import type { Commits } from './commits.ts'
import type { TopicPartitions } from './reader-assign.ts'
import type { BatchUnreadable } from './reader-batches.ts'
import { type Board, type Lane, laneKey } from './reader-board.ts'
import type { Group } from './reader-group.ts'
import type { TopicsFound } from './topics.ts'

export interface LanesParts {
  readonly link: BrokerLink
  readonly board: Board
  readonly group: Group
  readonly commits: Commits
  /** Topics that were made anew since they were read last: what was committed of them is of the old ones. */
  readonly anew: ReadonlySet<string>
}

/** Asks for the first offset that there is. */
const EARLIEST = -2n
/** Stands for an offset that is not known yet. */
const NOWHERE = -1n

export class Lanes {
  readonly #parts: LanesParts
  #lanes: ReadonlyMap<string, Lane> = new Map()

  constructor(parts: LanesParts) {
    this.#parts = parts
  }

  all(): readonly Lane[] {
    return [...this.#lanes.values()]
  }

  of(topic: string, partition: number): Lane | undefined {
    return this.#lanes.get(laneKey(topic, partition))
  }

  /** Makes the lanes what the group assigned: those that stay go on where they are, new ones begin where the group committed. */
  async arrange(assignment: readonly TopicPartitions[], { found }: TopicsFound): Promise<void> {
    const lanes = new Map<string, Lane>()
    for (const { topic, partitions } of assignment) {
      const at = found.get(topic)
      if (at === undefined) continue
      for (const partition of partitions) {
        const lane = this.of(topic, partition) ?? newLane(topic, partition, at.id)
        lane.leader = at.leaders[partition] ?? -1
        lane.fetchAt = lane.doneAt
        lanes.set(laneKey(topic, partition), lane)
      }
    }
    for (const [key, lane] of this.#lanes) if (!lanes.has(key)) this.#parts.commits.forget(lane)
    this.#lanes = lanes
    this.#parts.board.lanes(lanes)
    await this.#find(this.all().filter(({ doneAt, isResting }) => doneAt === NOWHERE && !isResting))
  }

  /** Goes on here. */
  place(lane: Lane, offset: bigint): void {
    lane.doneAt = offset
    lane.fetchAt = offset
  }

  /** The first offset there is. */
  async earliest({ topic, partition, leader }: Lane): Promise<bigint> {
    const { link } = this.#parts
    const connection = await link.to(leader)
    const partitions = [{ partitionIndex: partition, currentLeaderEpoch: -1, timestamp: EARLIEST }]
    const answer = await link.library.listOffsetsV5.api.async(connection, -1, 0, [
      { name: topic, partitions },
    ])
    const offset = answer.topics[0]?.partitions[0]?.offset ?? NOWHERE
    if (offset < 0n) throw new Error(`the broker names no first offset of partition ${partition} of ${topic}`)
    return offset
  }

  /** The broker forbids it, or says of it what cannot be repaired here. The others go on; it is tried again later. */
  rest(lane: Lane, code: string): void {
    lane.isResting = true
    const right =
      code === 'TOPIC_AUTHORIZATION_FAILED' ? `; grant Read and Describe on topic ${lane.topic}` : ''
    this.#parts.board.laneTrouble(lane, `${nameOf(lane)} cannot be read: ${code}${right}.`)
  }

  /** Its next batch makes no sense. Nothing is skipped; the batch is asked for again later. */
  restAt(lane: Lane, { offset, next, message }: BatchUnreadable): void {
    lane.isResting = true
    lane.fetchAt = lane.doneAt
    this.#parts.board.laneTrouble(
      lane,
      `${nameOf(lane)} stands still: its batch at offset ${offset} cannot be read: ${message}.${
        next === null ? '' : ` The next one begins at offset ${next}; docs/kafka.md says how to pass it.`
      }`,
    )
  }

  /** Whether any lane rested and is to be tried now. */
  wake(): boolean {
    const resting = this.all().filter(({ isResting }) => isResting)
    for (const lane of resting) lane.isResting = false
    return resting.length > 0
  }

  async #find(fresh: readonly Lane[]): Promise<void> {
    if (fresh.length === 0) return
    const { group, anew } = this.#parts
    for (const { topic, partition, offset, code } of await group.committed(byTopic(fresh))) {
      const lane = this.of(topic, partition)
      if (lane === undefined) continue
      if (code !== '') {
        this.rest(lane, code)
      } else if (offset >= 0n && !anew.has(topic)) {
        this.place(lane, offset)
        lane.committed = offset
      }
    }
    for (const lane of fresh) {
      if (lane.doneAt === NOWHERE && !lane.isResting && lane.leader >= 0) await this.#begin(lane)
    }
  }

  /** Where nothing is committed, reading begins with the first record there is. */
  async #begin(lane: Lane): Promise<void> {
    try {
      this.place(lane, await this.earliest(lane))
      // What is committed of the old topic would be taken for the new one's after a restart.
      if (this.#parts.anew.has(lane.topic)) this.#parts.commits.note({ ...lane, offset: lane.doneAt })
    } catch (error) {
      this.rest(lane, troubleOf(error).code)
    }
  }
}

/** A partition in words. */
export const nameOf = ({ topic, partition }: Lane): string => `Partition ${partition} of ${topic}`

const newLane = (topic: string, partition: number, topicId: string): Lane => ({
  topic,
  partition,
  topicId,
  leader: -1,
  fetchAt: NOWHERE,
  doneAt: NOWHERE,
  committed: null,
  end: null,
  trouble: null,
  isResting: false,
})

function byTopic(lanes: readonly Lane[]): readonly TopicPartitions[] {
  const topics = new Map<string, number[]>()
  for (const { topic, partition } of lanes) topics.set(topic, [...(topics.get(topic) ?? []), partition])
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }))
}
