import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import type { ItemId, StoredItem } from '../queue.ts'
import { encodeMessage } from './codec.ts'
import {
  QueueInfoSchema,
  QueuePeekResponseSchema,
  QueueStatsResponseSchema,
  StorageItemSchema,
  StorageItemsListResponseSchema,
} from './queues_pb.ts'
import { importedItem, peekedItem, queueInfo, queueStats, storageItem } from './replies.ts'

const newYear = 1_798_761_600_123_456n
const stored: StoredItem = {
  // An id as the queues give it.
  id: '3OGEefTZywrEH2GvWZYyDARoCmV' as ItemId,
  sourceId: '',
  isLeased: false,
  leaseDeadline: null,
  expireDeadline: instant(newYear + 86_400_000_000n),
  createdAt: instant(newYear),
  enqueueAt: instant(newYear),
  attempts: 0,
  maxAttempts: 0,
  encoding: '',
  kind: '',
  reference: '',
  payload: new TextEncoder().encode('hi'),
  death: null,
}

describe('a reply in JSON', () => {
  it('lists stored items as the contract shows them', () => {
    const json = encodeMessage(StorageItemsListResponseSchema, { items: [storageItem(stored)] }, 'json')
    expect(json).toBe(
      '{"items":[{"id":"3OGEefTZywrEH2GvWZYyDARoCmV","lease_deadline":"0001-01-01T00:00:00Z","expire_deadline":"2027-01-02T00:00:00.123456Z","created_at":"2027-01-01T00:00:00.123456Z","payload":"aGk="}]}',
    )
    expect(encodeMessage(StorageItemsListResponseSchema, { items: [] }, 'json')).toBe('{}')
  })

  it('tells stats as the contract shows them', () => {
    const empty = {
      total: 0,
      totalLeased: 0,
      scheduled: 0,
      failures: 0,
      averageAgeUs: 0n,
      averageLeasedAgeUs: 0n,
    }
    const stats = queueStats({
      queueName: 'q',
      produceWaiting: 0,
      leaseWaiting: 2,
      completeWaiting: 0,
      inFlight: 0,
      partitions: [
        { ...empty, partition: 0 },
        { ...empty, partition: 1, total: 3, averageAgeUs: 62_500_000n },
      ],
    })
    expect(encodeMessage(QueueStatsResponseSchema, stats, 'json')).toBe(
      '{"queue_name":"q","logicalQueues":[{"lease_waiting":2,"partitions":[{"average_age":"0s","average_leased_age":"0s"},{"partition":1,"total":3,"average_age":"1m2.5s","average_leased_age":"0s"}]}]}',
    )
  })

  it('shows a queue with its times, timeouts and namespace, and without partitions', () => {
    const info = queueInfo({
      queueName: 'q',
      createdAt: instant(newYear),
      updatedAt: instant(newYear + 1n),
      leaseTimeoutNs: 60_000_000_000n,
      expireTimeoutNs: 86_400_000_000_000n,
      deadQueue: '',
      reference: '',
      maxAttempts: 0,
      requestedPartitions: 1,
      namespace: '_system',
      onDeath: 'letter',
    })
    expect(JSON.parse(String(encodeMessage(QueueInfoSchema, info, 'json')))).toEqual({
      queue_name: 'q',
      created_at: '2027-01-01T00:00:00.123456Z',
      updated_at: '2027-01-01T00:00:00.123457Z',
      lease_timeout: '1m0s',
      expire_timeout: '24h0m0s',
      requested_partitions: 1,
      namespace: '_system',
    })
  })

  it('shows how a peeked item died', () => {
    const death = {
      queueName: 'orders',
      partition: 1,
      reason: 'attempts' as const,
      attempts: 3,
      createdAt: instant(newYear),
      diedAt: instant(newYear),
    }
    const reply = encodeMessage(
      QueuePeekResponseSchema,
      { items: [peekedItem({ ...stored, death })] },
      'json',
    )
    expect(JSON.parse(String(reply)).items[0].death).toEqual({
      queue_name: 'orders',
      partition: 1,
      reason: 'attempts',
      attempts: 3,
      created_at: '2027-01-01T00:00:00.123456Z',
      died_at: '2027-01-01T00:00:00.123456Z',
    })
  })
})

describe('the echo of a skipped import', () => {
  it('is the item as received, cut down to microseconds, without the times that are never sent', () => {
    const received = create(StorageItemSchema, {
      id: 'given',
      sourceId: 's',
      attempts: 2,
      expireDeadline: { seconds: 1n, nanos: 999 },
      deadDeadline: { seconds: 1n },
      updatedAt: { seconds: 1n },
      enqueueAt: { seconds: 1n },
    })
    const json = encodeMessage(StorageItemSchema, importedItem(received, { outcome: 'existed' }), 'json')
    expect(JSON.parse(String(json))).toEqual({
      id: 'given',
      source_id: 's',
      attempts: 2,
      lease_deadline: '0001-01-01T00:00:00Z',
      expire_deadline: '1970-01-01T00:00:01Z',
      created_at: '0001-01-01T00:00:00Z',
    })
  })

  it('survives a time that no calendar has', () => {
    const received = create(StorageItemSchema, { createdAt: { seconds: 1n << 60n } })
    expect(() => encodeMessage(StorageItemSchema, importedItem(received, undefined), 'json')).not.toThrow()
  })
})
