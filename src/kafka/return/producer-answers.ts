/** What the answer of a broker to a record proves. */
import type { PublishOutcome } from '../ports.ts'

export type FailureWhy = Extract<PublishOutcome, { outcome: 'failed' }>['why']

export type Meaning =
  | { readonly is: 'written' }
  /** The broker has a record with this number, and has forgotten where. It is ours when an earlier try may have written it. */
  | { readonly is: 'number_taken' }
  /** It was not written, and will not be. */
  | { readonly is: 'refused'; readonly why: FailureWhy }
  /** It was not written, but may be when it is sent again. */
  | { readonly is: 'not_now' }
  /** It was not written: the broker knows nothing of the sender, or not of the records before this one. */
  | { readonly is: 'stranger' }
  /** It may have been written before this went wrong. */
  | { readonly is: 'doubtful' }

const MEANINGS: Readonly<Record<string, Meaning>> = {
  '': { is: 'written' },
  DUPLICATE_SEQUENCE_NUMBER: { is: 'number_taken' },

  MESSAGE_TOO_LARGE: { is: 'refused', why: 'too_large' },
  RECORD_LIST_TOO_LARGE: { is: 'refused', why: 'too_large' },
  UNKNOWN_TOPIC_OR_PARTITION: { is: 'refused', why: 'topic_missing' },
  INVALID_TOPIC_EXCEPTION: { is: 'refused', why: 'topic_missing' },
  TOPIC_AUTHORIZATION_FAILED: { is: 'refused', why: 'not_authorized' },
  CLUSTER_AUTHORIZATION_FAILED: { is: 'refused', why: 'not_authorized' },
  INVALID_RECORD: { is: 'refused', why: 'unavailable' },
  INVALID_TIMESTAMP: { is: 'refused', why: 'unavailable' },
  CORRUPT_MESSAGE: { is: 'refused', why: 'unavailable' },
  INVALID_REQUIRED_ACKS: { is: 'refused', why: 'unavailable' },
  POLICY_VIOLATION: { is: 'refused', why: 'unavailable' },
  UNSUPPORTED_COMPRESSION_TYPE: { is: 'refused', why: 'unavailable' },
  UNSUPPORTED_FOR_MESSAGE_FORMAT: { is: 'refused', why: 'unavailable' },

  NOT_LEADER_OR_FOLLOWER: { is: 'not_now' },
  LEADER_NOT_AVAILABLE: { is: 'not_now' },
  FENCED_LEADER_EPOCH: { is: 'not_now' },
  NOT_ENOUGH_REPLICAS: { is: 'not_now' },
  THROTTLING_QUOTA_EXCEEDED: { is: 'not_now' },

  UNKNOWN_PRODUCER_ID: { is: 'stranger' },
  OUT_OF_ORDER_SEQUENCE_NUMBER: { is: 'stranger' },
  INVALID_PRODUCER_EPOCH: { is: 'stranger' },
  INVALID_PRODUCER_ID_MAPPING: { is: 'stranger' },
  PRODUCER_FENCED: { is: 'stranger' },
}

/** What a code means; one that is not in the table proves nothing. */
export const meaningOf = (code: string): Meaning => MEANINGS[code] ?? { is: 'doubtful' }
