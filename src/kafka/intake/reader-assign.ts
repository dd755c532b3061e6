/** Who of a group reads which partition. The member that the brokers call the leader decides it for all. */

export interface Membership {
  readonly memberId: string
  readonly topics: readonly string[]
}

export interface TopicPartitions {
  readonly topic: string
  readonly partitions: readonly number[]
}

/**
 * Deals the partitions out in turn, each topic's among the members that want it: an instance that does not know of a new topic yet gets
 * none of it. All topics count on, so that many topics of one partition do not all go to the first member.
 */
export function assign(
  members: readonly Membership[],
  partitionCounts: ReadonlyMap<string, number>,
): ReadonlyMap<string, readonly TopicPartitions[]> {
  const sorted = [...members].sort((a, b) => (a.memberId < b.memberId ? -1 : 1))
  const shares = new Map(sorted.map(({ memberId }) => [memberId, new Map<string, number[]>()]))
  const topics = [...new Set(sorted.flatMap(({ topics }) => topics))].sort()
  let turn = 0
  for (const topic of topics) {
    const readers = sorted.filter((member) => member.topics.includes(topic))
    for (let partition = 0; partition < (partitionCounts.get(topic) ?? 0); partition++) {
      const share = shares.get(readers[turn++ % readers.length]?.memberId ?? '')
      const partitions = share?.get(topic)
      if (partitions === undefined) share?.set(topic, [partition])
      else partitions.push(partition)
    }
  }
  return new Map(
    [...shares].map(([memberId, share]) => [
      memberId,
      [...share].map(([topic, partitions]) => ({ topic, partitions })),
    ]),
  )
}
