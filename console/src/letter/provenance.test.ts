import { describe, expect, it } from 'vitest'
import { originOf } from './provenance.ts'

describe('where a message lies', () => {
  it('is topic, partition and offset in Kafka', () => {
    const letter = { source: 'kafka', sourceId: 'orders.dlq:3:9007199254740993:ab12', originalQueue: null }
    expect(originOf(letter).map(({ value }) => value)).toEqual(['orders.dlq', '3', '9007199254740993'])
    expect(originOf({ ...letter, sourceId: 'else' })).toEqual([])
  })

  it('is a row in an outbox', () => {
    const letter = { source: 'outbox', sourceId: 'shop/17', originalQueue: 'shop' }
    expect(originOf(letter)).toEqual([
      { name: 'Outbox', value: 'shop' },
      { name: 'Row', value: '17' },
    ])
  })

  it('is what the source id says elsewhere', () => {
    expect(originOf({ source: 'queues', sourceId: '2mQ', originalQueue: 'orders' })).toEqual([])
  })
})
