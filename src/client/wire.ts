/**
 * Between the client's objects and the JSON of the wire: snake_case names, base64 payloads, and defaults that
 * replies leave out.
 */
import { fromBase64, toBase64, utf8 } from './bytes.ts'
import { optionalTimeFromWire, type Time, timeFromWire, timeToWire } from './times.ts'
import type {
  Death,
  ImportItem,
  ItemContent,
  LeasedBatch,
  LeasedItem,
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

/** `queueName` as `queue_name`. */
type Snake<Name> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : ''

/** What the server sends for it: times and bytes are text, and every field may be missing. */
type Wire<Read> = {
  -readonly [Name in keyof Read as Snake<Name>]?: Read[Name] extends string | number | boolean
    ? Read[Name]
    : string
}

export type WireQueue = Wire<Queue>

type WireContent = Wire<Omit<ItemContent, 'payload'>>

export interface WireLeasedBatch {
  queue_name?: string
  partition?: number
  items?: (Wire<Omit<LeasedItem, 'payload'>> & { bytes?: string })[]
}

export type WireStoredItem = Wire<StoredItem>

export type WirePeekedItem = WireStoredItem & { death?: Wire<Death> }

export interface WireStats {
  queue_name?: string
  logicalQueues?: (Wire<Omit<QueueStats, 'queueName' | 'partitions'>> & {
    partitions?: Wire<PartitionStats>[]
  })[]
}

export interface WireReceipt {
  partition?: number
  items?: Wire<ProduceReceipt['items'][number]>[]
}

const optionalTime = (time: Time | undefined) => (time === undefined ? undefined : timeToWire(time))

/** Text goes as text: it needs no base64, and a reader of the traffic can read it. */
function payloadToWire(payload: Uint8Array | string | undefined): { bytes?: string; utf8?: string } {
  if (payload === undefined || payload.length === 0) return {}
  return typeof payload === 'string' ? { utf8: payload } : { bytes: toBase64(payload) }
}

/** These fields under the names of the wire. Those that are `undefined` disappear when the request is written as JSON. */
export const fieldsOf = <Of extends object>(of: Of, ...names: readonly (keyof Of & string)[]) =>
  Object.fromEntries(
    names.map((name) => {
      const value = of[name]
      const wireName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      return [wireName, value instanceof Date ? timeToWire(value) : (value ?? undefined)]
    }),
  )

export const settingsToWire = (settings: QueueSettings) => ({
  ...fieldsOf(settings, 'queueName', 'leaseTimeout', 'expireTimeout', 'deadQueue', 'reference'),
  ...fieldsOf(settings, 'maxAttempts', 'onDeath', 'requestedPartitions'),
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

export const retryItemToWire = (item: RetryItem) =>
  fieldsOf(item, 'id', 'retryAt', 'dead', 'errorClass', 'errorMessage', 'errorStack')

export const importItemToWire = (item: ImportItem) => ({
  ...fieldsOf(item, 'sourceId', 'isLeased', 'leaseDeadline', 'expireDeadline', 'attempts', 'maxAttempts'),
  ...fieldsOf(item, 'encoding', 'kind', 'reference'),
  payload: bytes(typeof item.payload === 'string' ? utf8(item.payload) : item.payload),
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

const deathFromWire = (wire: Wire<Death>): Death => ({
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

const partitionStatsFromWire = (wire: Wire<PartitionStats>): PartitionStats => ({
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
