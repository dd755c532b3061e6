import { create, toBinary, toJsonString } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import { partsFromInstant, ZERO_TIME } from '../../core/timestamp.ts'
import type { ItemId, LeasedBatch } from '../queue.ts'
import { leaseReplyBinary, leaseReplyJson } from './lease-encode.ts'
import { QueueLeaseResponseSchema } from './queues_pb.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constant(''),
  fc.string({ maxLength: 300 }),
)
const int = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 2 ** 31 - 1 }))
const at = fc
  .oneof(
    fc.bigInt({ min: ZERO_TIME, max: 253_402_300_799_999_999n }),
    fc.constantFrom(0n, ZERO_TIME, 1_000_000n, 1_798_000_000_123_000n, 1_798_000_000_123_456n),
  )
  .map(instant)

const batches: fc.Arbitrary<LeasedBatch> = fc.record({
  queueName: text,
  partition: int,
  items: fc.array(
    fc.record({
      encoding: text,
      kind: text,
      reference: text,
      // Any text stands for an id here, as long as JSON needs no escapes for it.
      id: fc.stringMatching(/^[0-9A-Za-z]{0,27}$/).map((id) => id as ItemId),
      attempts: int,
      leaseDeadline: at,
      payload: fc.uint8Array({ maxLength: 200 }),
    }),
    { maxLength: 5 },
  ),
})

const message = ({ queueName, partition, items }: LeasedBatch) =>
  create(QueueLeaseResponseSchema, {
    queueName,
    partition,
    items: items.map(({ payload, leaseDeadline, ...item }) => ({
      ...item,
      bytes: payload,
      leaseDeadline: partsFromInstant(leaseDeadline),
    })),
  })

describe('a lease reply', () => {
  it('is the same JSON that the protobuf library writes', () => {
    fc.assert(
      fc.property(batches, (batch) => {
        expect(leaseReplyJson(batch)).toBe(toJsonString(QueueLeaseResponseSchema, message(batch)))
      }),
    )
  })

  it('is the same binary message that the protobuf library writes', () => {
    fc.assert(
      fc.property(batches, (batch) => {
        const expected = toBinary(QueueLeaseResponseSchema, message(batch))
        expect(leaseReplyBinary(batch).toString('hex')).toBe(Buffer.from(expected).toString('hex'))
      }),
    )
  })

  it('is the example of the contract', () => {
    const batch: LeasedBatch = {
      queueName: 'q',
      partition: 0,
      items: [
        {
          encoding: '',
          kind: 'k',
          reference: 'r',
          // An id as the queues give it.
          id: '3OGEefTZywrEH2GvWZYyDARoCmV' as ItemId,
          attempts: 1,
          leaseDeadline: instant(1_798_761_660_123_456n),
          payload: new TextEncoder().encode('hi'),
        },
      ],
    }
    expect(leaseReplyJson(batch)).toBe(
      '{"queue_name":"q","items":[{"kind":"k","reference":"r","id":"3OGEefTZywrEH2GvWZYyDARoCmV","attempts":1,"lease_deadline":"2027-01-01T00:01:00.123456Z","bytes":"aGk="}]}',
    )
  })
})
