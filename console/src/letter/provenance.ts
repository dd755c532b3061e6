/** Where the message of a letter lies at its source, as far as the source id tells. */
import type { LetterItem } from '../api/types.ts'

export interface Origin {
  readonly name: string
  readonly value: string
}

/** In the words of the source; empty where the source id is a name of its own. */
export function originOf({
  source,
  sourceId,
  originalQueue,
}: Pick<LetterItem, 'source' | 'sourceId' | 'originalQueue'>): readonly Origin[] {
  if (source === 'kafka') {
    const [, topic, partition, offset] = /^(.+):(\d+):(\d+):[\da-f]+$/.exec(sourceId) ?? []
    if (topic === undefined || partition === undefined || offset === undefined) return []
    return [
      { name: 'Topic', value: topic },
      { name: 'Partition', value: partition },
      { name: 'Offset', value: offset },
    ]
  }
  if (source === 'outbox' && originalQueue !== null && sourceId.startsWith(`${originalQueue}/`)) {
    return [
      { name: 'Outbox', value: originalQueue },
      { name: 'Row', value: sourceId.slice(originalQueue.length + 1) },
    ]
  }
  if (source === 'webhooks') return [{ name: 'Job', value: sourceId }]
  return []
}
