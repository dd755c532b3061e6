/** Brokers' answers to records, and what they prove. */
export type RefusalReason = 'too_large' | 'topic_missing' | 'not_authorized' | 'unavailable'

export type Meaning =
  | { readonly is: 'written' }
  /** The broker has forgotten where its record with this number is. It is ours if an earlier try may have written it. */
  | { readonly is: 'number_taken' }
  /** Not written, and never will be. */
  | { readonly is: 'refused'; readonly why: RefusalReason }
  /** Not written, but may be when sent again. */
  | { readonly is: 'not_now' }
  /** Not written: the broker does not know the sender, or the records before this one. */
  | { readonly is: 'stranger' }
  /** May have been written before this went wrong. */
  | { readonly is: 'doubtful' }

const TOO_LARGE = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'] as const

/** Codes that a record meets every time, and others do not. */
export const RECORD_REFUSED: readonly string[] = [...TOO_LARGE, 'INVALID_RECORD']

const MEANINGS: readonly (readonly [Meaning, ...codes: readonly string[]])[] = [
  [{ is: 'written' }, ''],
  [{ is: 'number_taken' }, 'DUPLICATE_SEQUENCE_NUMBER'],
  [{ is: 'refused', why: 'too_large' }, ...TOO_LARGE],
  [{ is: 'refused', why: 'topic_missing' }, 'UNKNOWN_TOPIC_OR_PARTITION', 'INVALID_TOPIC_EXCEPTION'],
  [{ is: 'refused', why: 'not_authorized' }, 'TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED'],
  [
    { is: 'refused', why: 'unavailable' },
    ...[
      'INVALID_RECORD',
      'INVALID_TIMESTAMP',
      'CORRUPT_MESSAGE',
      'INVALID_REQUIRED_ACKS',
      'POLICY_VIOLATION',
    ],
    ...['UNSUPPORTED_COMPRESSION_TYPE', 'UNSUPPORTED_FOR_MESSAGE_FORMAT'],
  ],
  [
    { is: 'not_now' },
    ...['NOT_LEADER_OR_FOLLOWER', 'LEADER_NOT_AVAILABLE', 'FENCED_LEADER_EPOCH', 'NOT_ENOUGH_REPLICAS'],
    'THROTTLING_QUOTA_EXCEEDED',
  ],
  [
    { is: 'stranger' },
    ...['UNKNOWN_PRODUCER_ID', 'OUT_OF_ORDER_SEQUENCE_NUMBER', 'INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'],
    'INVALID_PRODUCER_ID_MAPPING',
  ],
]

/** A code outside the table proves nothing. */
export const meaningOf = (code: string): Meaning =>
  MEANINGS.find(([, ...codes]) => codes.includes(code))?.[0] ?? { is: 'doubtful' }

/** The right that somebody must grant for this code. */
export const rightFor = (code: string, topic: string): string => {
  if (code === 'TOPIC_AUTHORIZATION_FAILED') return `; grant Write and Describe on topic ${topic}`
  // Brokers before 2.8; later ones ask for Write on any topic.
  return code === 'CLUSTER_AUTHORIZATION_FAILED'
    ? '; grant Write on the topic, or IdempotentWrite on the cluster'
    : ''
}
