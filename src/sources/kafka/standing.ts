/** How intake stands, judged: what is behind, and whether somebody should look. */
import type { IntakeStanding, PartitionStanding } from './ports.ts'

/** How many records of a partition are not taken in yet; null when that is not known. Markers of transactions count too. */
export const lagOf = ({ committed, end }: Pick<PartitionStanding, 'committed' | 'end'>): bigint | null =>
  committed === null || end === null ? null : end > committed ? end - committed : 0n

/**
 * What is wrong, for everybody to read: without names of topics, brokers and services, and without what brokers say, which are the
 * business of those with a token. Empty when all is well.
 */
export function publicTroubles({
  state,
  troubles,
  missingTopics,
  partitions,
}: IntakeStanding): readonly string[] {
  const stopped = partitions.filter(({ trouble }) => trouble !== null).length
  const found = [
    ...(missingTopics.length > 0
      ? [counted(missingTopics.length, 'topic', 'does not exist', 'do not exist')]
      : []),
    ...(stopped > 0 ? [counted(stopped, 'partition', 'has trouble', 'have trouble')] : []),
  ]
  if (found.length > 0) return found
  return state === 'degraded' || troubles.length > 0 ? ['dead events are not taken in as they should'] : []
}

const counted = (count: number, what: string, one: string, many: string): string =>
  count === 1 ? `1 ${what} ${one}` : `${count} ${what}s ${many}`
