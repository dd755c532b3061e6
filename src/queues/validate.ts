/** The checks of the contract, in its order: a request often breaks several rules, and the first failure is the answer. */
import { hasControlCharacter } from '../core/content.ts'
import { formatGoDuration, parseGoDuration } from '../core/duration.ts'
import { failure } from '../core/errors.ts'
import { checkKsuid, serialFromId } from '../core/ksuid.ts'
import type {
  ClearRequest,
  CompleteRequest,
  LeaseRequest,
  ListQueuesRequest,
  NewItem,
  ProduceRequest,
  QueueInfo,
  QueueSettings,
  RetryRequest,
} from './queue.ts'
import { itemIdIn, type Partition } from './records.ts'
import { ON_DEATH, type OnDeath } from './shapes.ts'

const MILLISECOND_NS = 1_000_000n
const MIN_REQUEST_TIMEOUT_NS = 10n * MILLISECOND_NS
const MAX_REQUEST_TIMEOUT_NS = 15n * 60_000n * MILLISECOND_NS
const DEFAULT_REQUEST_TIMEOUT = '1m'
const MAX_BATCH = 1_000
const MAX_PARTITIONS = 1_024
const DEFAULT_LIST_LIMIT = 1_000
export const MAX_QUEUES_LISTED = 65_536
const MAX_DEDUPE_KEY_BYTES = 512

export const SYSTEM_NAMESPACE = '_system'

/** Unicode white space, as the contract's clients see it. */
const WHITE_SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8')
const isBlank = (text: string): boolean => [...text].every((character) => WHITE_SPACE.test(character))

/** A name to look up; the store says whether it exists. */
export function checkLookupName(name: string): void {
  if (isBlank(name)) throw failure('queue_name_empty')
  if (name.includes('~')) throw failure('queue_name_tilde', { name })
}

export function checkQueueName(name: string): void {
  if (bytesOf(name) > 512) throw failure('queue_name_too_long')
  if (isBlank(name)) throw failure('queue_name_empty')
  if (WHITE_SPACE.test(name)) throw failure('queue_name_whitespace', { name })
  if (name.includes('~')) throw failure('queue_name_tilde', { name })
  if (name.includes('\0')) throw failure('queue_name_nul')
}

/** A name to create. Older queues may have other names, and can still be changed and deleted. */
export function checkNewQueueName(name: string): void {
  checkQueueName(name)
  if (hasControlCharacter(name)) throw failure('queue_name_control')
}

export function checkProduce(request: ProduceRequest): void {
  const timeoutNs = parseRequestTimeout(request.requestTimeout)
  checkTimeoutGiven(timeoutNs)
  if (timeoutNs >= MAX_REQUEST_TIMEOUT_NS) throw tooLong(timeoutNs)
  if (timeoutNs <= MIN_REQUEST_TIMEOUT_NS) throw tooShort(timeoutNs)
  const count = request.items.length
  if (count === 0) throw failure('produce_empty')
  if (count > MAX_BATCH) throw failure('produce_too_many', { count })
  for (const item of request.items) checkDedupeKey(item)
}

function checkDedupeKey({ dedupeKey }: NewItem): void {
  if (dedupeKey !== undefined && bytesOf(dedupeKey) > MAX_DEDUPE_KEY_BYTES)
    throw failure('dedupe_key_too_long')
}

/** Gives the time to wait. */
export function checkLease(request: LeaseRequest): bigint {
  const timeoutNs = parseRequestTimeout(request.requestTimeout)
  if (isBlank(request.clientId)) throw failure('client_id_empty')
  if (request.batchSize <= 0) throw failure('batch_size_too_small')
  if (request.batchSize > MAX_BATCH) throw failure('batch_size_too_large', { count: request.batchSize })
  checkTimeoutGiven(timeoutNs)
  if (timeoutNs > MAX_REQUEST_TIMEOUT_NS) throw tooLong(timeoutNs)
  if (timeoutNs <= MIN_REQUEST_TIMEOUT_NS) throw tooShort(timeoutNs)
  return timeoutNs
}

export function checkComplete(request: CompleteRequest): void {
  const timeoutNs = parseRequestTimeout(request.requestTimeout)
  checkIds(request.ids)
  if (timeoutNs > MAX_REQUEST_TIMEOUT_NS) throw tooLong(timeoutNs)
  checkTimeoutGiven(timeoutNs)
}

export function checkRetry({ items }: RetryRequest): void {
  if (items.length === 0) throw failure('retry_empty')
  if (items.length > MAX_BATCH) throw failure('retry_too_many', { count: items.length })
}

export function checkIds(ids: readonly string[]): void {
  if (ids.length === 0) throw failure('complete_empty')
  if (ids.length > MAX_BATCH) throw failure('complete_too_many', { count: ids.length })
}

export function checkClear({ queue, scheduled }: ClearRequest): void {
  if (queue !== true && scheduled !== true) throw failure('clear_nothing')
}

/** 0 means the default; there is no maximum. */
export function listLimit(limit: number | undefined): number {
  if (limit !== undefined && limit < 0) throw failure('limit_negative')
  return limit || DEFAULT_LIST_LIMIT
}

/** First serial of a page from `pivot` on; null when the pivot is behind every possible id. */
export function firstSerialFrom(partition: Partition, pivot: string): number | null {
  if (pivot.trim() === '') return 0
  const reason = checkKsuid(pivot)
  if (reason !== null) throw failure('item_id_malformed', { id: pivot, reason })
  const serial = serialFromId(partition.idPrefix, pivot)
  if (serial !== null) return serial
  return pivot < itemIdIn(partition, 0) ? 0 : null
}

/** 1 to 1000, default 10. */
export function peekLimit(limit: number | undefined): number {
  if (limit !== undefined && limit < 0) throw failure('limit_negative')
  if (limit !== undefined && limit > MAX_BATCH) throw failure('limit_too_large', { max: MAX_BATCH })
  return limit || 10
}

export function checkListQueues(request: ListQueuesRequest) {
  const { pivot = '', limit = 0, namespace = '' } = request
  if (limit < 0) throw failure('limit_negative')
  if (limit > MAX_QUEUES_LISTED) throw failure('limit_too_large', { max: MAX_QUEUES_LISTED })
  if (pivot.includes('~')) throw failure('pivot_tilde', { pivot })
  return { pivot, limit: limit || DEFAULT_LIST_LIMIT, namespace: namespace || SYSTEM_NAMESPACE }
}

/** First checks of create and update: names and durations by themselves. A duration of 0 means not given. */
export function parseSettings(settings: QueueSettings) {
  const { leaseTimeout = '', expireTimeout = '', namespace = '' } = settings
  checkQueueName(settings.queueName)
  if (bytesOf(leaseTimeout) > 15) throw failure('lease_timeout_too_long_text')
  if (bytesOf(expireTimeout) > 15) throw failure('expire_timeout_too_long_text')
  const expireTimeoutNs = parseTimeout(expireTimeout, 'expire_timeout_malformed')
  const leaseTimeoutNs = parseTimeout(leaseTimeout, 'lease_timeout_malformed')
  if (namespace !== '') checkNamespace(namespace)
  return { leaseTimeoutNs, expireTimeoutNs }
}

function checkNamespace(name: string): void {
  if (bytesOf(name) > 256) throw failure('namespace_too_long')
  if (isBlank(name)) throw failure('namespace_empty')
  if (WHITE_SPACE.test(name)) throw failure('namespace_whitespace', { name })
  if (name.includes('~')) throw failure('namespace_tilde', { name })
  if (name.includes(':')) throw failure('namespace_colon', { name })
}

/** The form of a dead queue's name, and that it is another queue. */
export function checkDeadQueueName(name: string, queueName: string): void {
  if (bytesOf(name) > 500) throw failure('dead_queue_too_long')
  if (WHITE_SPACE.test(name)) throw failure('dead_queue_whitespace', { name })
  if (name.includes('~')) throw failure('dead_queue_tilde', { name })
  if (name.includes('\0')) throw failure('dead_queue_nul')
  if (name === queueName) throw failure('dead_queue_self')
}

/** Last checks: the settings as they would be stored. A new queue must have timeouts. */
export function checkMerged(queue: QueueInfo, isNew: boolean): void {
  if (bytesOf(queue.reference) > 2_000) throw failure('reference_too_long')
  if (queue.maxAttempts > 65_536) throw failure('max_attempts_too_large')
  if (queue.maxAttempts < 0) throw failure('max_attempts_negative')
  if (queue.requestedPartitions < 1) throw failure('partitions_too_few')
  if (queue.requestedPartitions > MAX_PARTITIONS) throw failure('partitions_too_many')
  const { leaseTimeoutNs: lease, expireTimeoutNs: expire } = queue
  if (isNew && isTooShortToStore(lease)) throw failure('lease_timeout_empty')
  if (isNew && isTooShortToStore(expire)) throw failure('expire_timeout_empty')
  if (lease < 0n) throw failure('lease_timeout_negative')
  if (expire < 0n) throw failure('expire_timeout_negative')
  if (lease > expire) {
    throw failure('lease_exceeds_expire', {
      lease: formatGoDuration(lease),
      expire: formatGoDuration(expire),
    })
  }
}

const SHOWN_CHARACTERS = 64

/** Checked last, because the contract does not know it. */
export function checkOnDeath({ onDeath = '' }: QueueSettings, unsaid: OnDeath): OnDeath {
  if (onDeath === '') return unsaid
  const known = ON_DEATH.find((each) => each === onDeath)
  if (known === undefined) throw failure('on_death_invalid', { given: onDeath.slice(0, SHOWN_CHARACTERS) })
  return known
}

const isTooShortToStore = (ns: bigint): boolean => ns >= 0n && ns < 1_000n

/** null: the queue's own lease timeout. */
export function parseExtension(leaseTimeout: string | undefined): bigint | null {
  const ns = parseTimeout(leaseTimeout ?? '', 'lease_timeout_malformed')
  if (ns < 0n) throw failure('lease_timeout_negative')
  return ns === 0n ? null : ns
}

function parseTimeout(
  text: string,
  code: 'lease_timeout_malformed' | 'expire_timeout_malformed' | 'request_timeout_malformed',
): bigint {
  if (text === '') return 0n
  const parsed = parseGoDuration(text)
  if (!parsed.ok) throw failure(code, { reason: parsed.reason })
  return parsed.ns
}

const parseRequestTimeout = (text = DEFAULT_REQUEST_TIMEOUT): bigint =>
  parseTimeout(text, 'request_timeout_malformed')

function checkTimeoutGiven(timeoutNs: bigint): void {
  if (timeoutNs === 0n) throw failure('request_timeout_required')
}

const tooLong = (ns: bigint) => failure('request_timeout_too_long', { given: formatGoDuration(ns) })
const tooShort = (ns: bigint) => failure('request_timeout_too_short', { given: formatGoDuration(ns) })
