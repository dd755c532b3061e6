import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { recordOf, VECTORS } from '../../../../test/kafka/vectors.ts'
import { header, record } from '../../../../test/world/kafka/records.ts'
import type { RawRecord } from '../event.ts'
import { isUuidV4 } from '../settings/settings.ts'
import { derivedDlqId, fingerprintOf, ownDlqId } from './store-incoming.ts'

const hexOf = (sample: RawRecord): string => Buffer.from(fingerprintOf(sample)).toString('hex')

describe('what a record is', () => {
  it.each(VECTORS.identity.map((vector, number) => [number, vector] as const))(
    'is the same for everybody: vector %i',
    (_, vector) => {
      const sample = recordOf(vector)
      expect(hexOf(sample)).toBe(vector.fingerprint)
      expect(derivedDlqId(sample, fingerprintOf(sample))).toBe(vector.derived_dlq_id)
    },
  )

  it('tells null from empty, and one header from another', () => {
    const plain: RawRecord = { ...record(), key: null, value: null, headers: [] }
    const others: readonly Partial<RawRecord>[] = [
      {},
      { key: Buffer.alloc(0) },
      { value: Buffer.alloc(0) },
      { timestampMs: -1n },
      { headers: [header('a', null)] },
      { headers: [header('a', '')] },
      { headers: [header('', 'a')] },
      { headers: [header('a', 'bc'), header('d', '')] },
      { headers: [header('ab', 'c'), header('d', '')] },
      { headers: [header('d', ''), header('a', 'bc')] },
    ]
    expect(new Set(others.map((other) => hexOf({ ...plain, ...other }))).size).toBe(others.length)
  })

  it('does not depend on the place, nor on the size of the desk it is laid out on', () => {
    const sample = record({ value: 'x'.repeat(70_000), offset: 1 })
    expect(hexOf({ ...sample, topic: 'other', partition: 3, offset: 9n })).toBe(hexOf(sample))
    expect(hexOf({ ...sample, value: new Uint8Array(Buffer.alloc(70_000, 'x')) })).toBe(hexOf(sample))
    const fingerprint = fingerprintOf(sample)
    fingerprintOf(record({ value: 'y' }))
    expect(Buffer.from(fingerprint).toString('hex')).toBe(hexOf(sample))
  })

  it('makes a UUID v4 of any place', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.nat(),
        fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
        (topic, partition, offset) => {
          const sample = record({ topic, partition, offset, headers: [] })
          expect(isUuidV4(derivedDlqId(sample, fingerprintOf(sample)))).toBe(true)
        },
      ),
    )
  })
})

describe('the id that a record brings', () => {
  const ID = '4706cc1b-4c32-46d9-91b9-57b2de45dfe0'

  it('is its event id, in lower case', () => {
    expect(ownDlqId(record({ eventId: ID.toUpperCase() }))).toBe(ID)
  })

  it('is the last of several', () => {
    expect(ownDlqId(record({ eventId: 'x', more: [['event_id', ID]] }))).toBe(ID)
    expect(ownDlqId(record({ eventId: ID, more: [['event_id', null]] }))).toBeNull()
  })

  it('is none when it is not a UUID v4', () => {
    for (const eventId of [null, '', 'svc,orders,0,17', 'a6b3a4de-e2c0-11f0-8de9-0242ac120002', `{${ID}}`]) {
      expect(ownDlqId(record({ eventId }))).toBeNull()
    }
    expect(ownDlqId(record({ eventId: null, more: [['event_id', Buffer.alloc(36, 0xff)]] }))).toBeNull()
  })
})
