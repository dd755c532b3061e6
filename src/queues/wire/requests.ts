/**
 * Wire messages as what the queues take. An absent text is the empty string and an absent number is 0, as
 * protobuf has it; the queues know that these mean "not given" where the contract says so.
 */
import type { Instant } from '../../core/clock.ts'
import { ZERO_TIME } from '../../core/timestamp.ts'
import type { CompleteRequest, ImportItem, NewItem, ProduceRequest, RetryItem } from '../queue.ts'
import { decodeMessage, decoding, type Format, parseJson } from './codec.ts'
import { instantFromWire } from './instants.ts'
import { producePlainBinary, producePlainJson } from './produce-decode.ts'
import {
  type QueueCompleteRequest,
  type QueueProduceItem,
  QueueProduceRequestSchema,
  type QueueProduceWithIdsItem,
  QueueProduceWithIdsRequestSchema,
  type QueueRetryItem,
  type StorageItem,
} from './queues_pb.ts'

/** A produce request from its body; `withIds` is our own variant, whose items may carry a dedupe key. */
export function produceRequest(body: Buffer, format: Format, withIds: boolean): ProduceRequest {
  const plain = decoding(() =>
    format === 'protobuf' ? producePlainBinary(body, withIds) : producePlainJson(parseJson(body), withIds),
  )
  if (plain !== undefined) return plain
  const schema = withIds ? QueueProduceWithIdsRequestSchema : QueueProduceRequestSchema
  const { queueName, requestTimeout, items } = decodeMessage(schema, body, format)
  return { queueName, requestTimeout, items: items.map(newItem) }
}

/** The payload is `bytes` unless that is empty, else `utf8`. */
function newItem(item: QueueProduceItem | QueueProduceWithIdsItem): NewItem {
  const { encoding, kind, reference, enqueueAt, bytes, utf8 } = item
  return {
    encoding,
    kind,
    reference,
    payload: bytes.length > 0 ? bytes : utf8,
    ...(enqueueAt === undefined ? {} : { enqueueAt: instantFromWire(enqueueAt, 'enqueue_at') }),
    ...('dedupeKey' in item && item.dedupeKey !== '' ? { dedupeKey: item.dedupeKey } : {}),
  }
}

export const completeRequest = (message: QueueCompleteRequest): CompleteRequest => ({
  queueName: message.queueName,
  partition: message.partition,
  requestTimeout: message.requestTimeout,
  ids: message.ids,
})

export const retryItem = ({ id, retryAt, dead, ...given }: QueueRetryItem): RetryItem => ({
  id,
  dead,
  errorClass: given.errorClass,
  errorMessage: given.errorMessage,
  errorStack: given.errorStack,
  ...(retryAt === undefined ? {} : { retryAt: instantFromWire(retryAt, 'retry_at') }),
})

/** Ids and the three times that are never stored are left behind. */
export function importItem(item: StorageItem): ImportItem {
  const leaseDeadline = deadline(item.leaseDeadline, 'lease_deadline')
  const expireDeadline = deadline(item.expireDeadline, 'expire_deadline')
  return {
    sourceId: item.sourceId,
    isLeased: item.isLeased,
    attempts: item.attempts,
    maxAttempts: item.maxAttempts,
    encoding: item.encoding,
    kind: item.kind,
    reference: item.reference,
    payload: item.payload,
    ...(leaseDeadline === undefined ? {} : { leaseDeadline }),
    ...(expireDeadline === undefined ? {} : { expireDeadline }),
  }
}

/** A zero time says the same as an absent one: none. */
function deadline(timestamp: StorageItem['leaseDeadline'], field: string): Instant | undefined {
  if (timestamp === undefined) return undefined
  const at = instantFromWire(timestamp, field)
  return at === ZERO_TIME ? undefined : at
}
