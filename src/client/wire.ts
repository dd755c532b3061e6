/**
 * Between the client's objects and the JSON of the wire: snake_case names, base64 payloads, and defaults that
 * replies leave out. The interfaces below are what the server sends; every field may be missing.
 */
import { fromBase64, toBase64 } from './bytes.ts'
import { optionalTimeFromWire, type Time, timeFromWire, timeToWire } from './times.ts'
import type {
  Death,
  ImportItem,
  ItemContent,
  LeasedBatch,
  NewItemWithKey,
  PartitionStats,
  PeekedItem,
  ProduceReceipt,
  Queue,
  QueueSettings,
  QueueStats,
  RetryItem,
  StoredItem,
} from './types.ts'

export interface WireQueue {
  queue_name?: string
  created_at?: string
  updated_at?: string
  lease_timeout?: string
  expire_timeout?: string
  dead_queue?: string
  /** In requests only. */
  on_death?: string
  reference?: string
  max_attempts?: number
  requested_partitions?: number
  namespace?: string
}

interface WireContent {
  encoding?: string
  kind?: string
  reference?: string
}

export interface WireLeasedBatch {
  queue_name?: string
  partition?: number
  items?: (WireContent & { id?: string; attempts?: number; lease_deadline?: string; bytes?: string })[]
}

export interface WireStoredItem extends WireContent {
  id?: string
  source_id?: string
  is_leased?: boolean
  lease_deadline?: string
  expire_deadline?: string
  created_at?: string
  attempts?: number
  max_attempts?: number
  payload?: string
}

interface WireDeath {
  queue_name?: string
  partition?: number
  reason?: string
  attempts?: number
  created_at?: string
  died_at?: string
}

export interface WirePeekedItem extends WireStoredItem {
  death?: WireDeath
}

interface WirePartitionStats {
  partition?: number
  total?: number
  total_leased?: number
  failures?: number
  average_age?: string
  average_leased_age?: string
  scheduled?: number
}

export interface WireStats {
  queue_name?: string
  logicalQueues?: {
    produce_waiting?: number
    lease_waiting?: number
    complete_waiting?: number
    in_flight?: number
    partitions?: WirePartitionStats[]
  }[]
}

export interface WireReceipt {
  partition?: number
  items?: { id?: string; outcome?: ProduceReceipt['items'][number]['outcome'] }[]
}

const optionalTime = (time: Time | undefined) => (time === undefined ? undefined : timeToWire(time))

/** Text goes as text: it needs no base64, and a reader of the traffic can read it. */
function payloadToWire(payload: Uint8Array | string | undefined): { bytes?: string; utf8?: string } {
  if (payload === undefined || payload.length === 0) return {}
  return typeof payload === 'string' ? { utf8: payload } : { bytes: toBase64(payload) }
}

export const settingsToWire = (settings: QueueSettings): WireQueue => ({
  queue_name: settings.queueName,
  ...(settings.leaseTimeout !== undefined && { lease_timeout: settings.leaseTimeout }),
  ...(settings.expireTimeout !== undefined && { expire_timeout: settings.expireTimeout }),
  ...(settings.deadQueue !== undefined && { dead_queue: settings.deadQueue }),
  ...(settings.reference !== undefined && { reference: settings.reference }),
  ...(settings.maxAttempts !== undefined && { max_attempts: settings.maxAttempts }),
  ...(settings.onDeath !== undefined && { on_death: settings.onDeath }),
  ...(settings.requestedPartitions !== undefined && { requested_partitions: settings.requestedPartitions }),
})

export const queueFromWire = (wire: WireQueue): Queue => ({
  queueName: wire.queue_name ?? '',
  createdAt: timeFromWire(wire.created_at ?? ''),
  updatedAt: timeFromWire(wire.updated_at ?? ''),
  leaseTimeout: wire.lease_timeout ?? '',
  expireTimeout: wire.expire_timeout ?? '',
  deadQueue: wire.dead_queue ?? '',
  reference: wire.reference ?? '',
  maxAttempts: wire.max_attempts ?? 0,
  requestedPartitions: wire.requested_partitions ?? 0,
  namespace: wire.namespace ?? '',
})

/** `undefined` fields disappear when the request is written as JSON. */
export const newItemToWire = (item: NewItemWithKey) => ({
  ...payloadToWire(item.payload),
  encoding: item.encoding,
  kind: item.kind,
  reference: item.reference,
  enqueue_at: optionalTime(item.enqueueAt),
  dedupe_key: item.dedupeKey,
})

export const retryItemToWire = (item: RetryItem) => ({
  id: item.id,
  retry_at: optionalTime(item.retryAt),
  dead: item.dead,
  error_class: item.errorClass,
  error_message: item.errorMessage,
  error_stack: item.errorStack,
})

export const importItemToWire = (item: ImportItem) => ({
  source_id: item.sourceId,
  is_leased: item.isLeased,
  lease_deadline: optionalTime(item.leaseDeadline),
  expire_deadline: optionalTime(item.expireDeadline),
  attempts: item.attempts,
  max_attempts: item.maxAttempts,
  encoding: item.encoding,
  kind: item.kind,
  reference: item.reference,
  payload:
    typeof item.payload === 'string' ? toBase64(new TextEncoder().encode(item.payload)) : bytes(item.payload),
})

const bytes = (payload: Uint8Array | undefined) => (payload === undefined ? undefined : toBase64(payload))

const contentFromWire = (wire: WireContent, payload: string | undefined): ItemContent => ({
  encoding: wire.encoding ?? '',
  kind: wire.kind ?? '',
  reference: wire.reference ?? '',
  payload: fromBase64(payload ?? ''),
})

export const batchFromWire = (wire: WireLeasedBatch): LeasedBatch => ({
  queueName: wire.queue_name ?? '',
  partition: wire.partition ?? 0,
  items: (wire.items ?? []).map((item) => ({
    ...contentFromWire(item, item.bytes),
    id: item.id ?? '',
    attempts: item.attempts ?? 0,
    leaseDeadline: timeFromWire(item.lease_deadline ?? ''),
  })),
})

export const storedItemFromWire = (wire: WireStoredItem): StoredItem => ({
  ...contentFromWire(wire, wire.payload),
  id: wire.id ?? '',
  sourceId: wire.source_id ?? '',
  isLeased: wire.is_leased ?? false,
  leaseDeadline: optionalTimeFromWire(wire.lease_deadline),
  expireDeadline: optionalTimeFromWire(wire.expire_deadline),
  createdAt: timeFromWire(wire.created_at ?? ''),
  attempts: wire.attempts ?? 0,
  maxAttempts: wire.max_attempts ?? 0,
})

const deathFromWire = (wire: WireDeath): Death => ({
  queueName: wire.queue_name ?? '',
  partition: wire.partition ?? 0,
  reason: wire.reason ?? '',
  attempts: wire.attempts ?? 0,
  createdAt: timeFromWire(wire.created_at ?? ''),
  diedAt: timeFromWire(wire.died_at ?? ''),
})

export const peekedItemFromWire = (wire: WirePeekedItem): PeekedItem => ({
  ...storedItemFromWire(wire),
  death: wire.death === undefined ? null : deathFromWire(wire.death),
})

export const receiptFromWire = (wire: WireReceipt): ProduceReceipt => ({
  partition: wire.partition ?? 0,
  items: (wire.items ?? []).map((item) => ({ outcome: item.outcome ?? 'queued', id: item.id ?? '' })),
})

const partitionStatsFromWire = (wire: WirePartitionStats): PartitionStats => ({
  partition: wire.partition ?? 0,
  total: wire.total ?? 0,
  totalLeased: wire.total_leased ?? 0,
  scheduled: wire.scheduled ?? 0,
  failures: wire.failures ?? 0,
  averageAge: wire.average_age ?? '0s',
  averageLeasedAge: wire.average_leased_age ?? '0s',
})

/** The server describes each queue as one logical queue. */
export function statsFromWire(wire: WireStats): QueueStats {
  const logical = wire.logicalQueues?.[0]
  return {
    queueName: wire.queue_name ?? '',
    produceWaiting: logical?.produce_waiting ?? 0,
    leaseWaiting: logical?.lease_waiting ?? 0,
    completeWaiting: logical?.complete_waiting ?? 0,
    inFlight: logical?.in_flight ?? 0,
    partitions: (logical?.partitions ?? []).map(partitionStatsFromWire),
  }
}
