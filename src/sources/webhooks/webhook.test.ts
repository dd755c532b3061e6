import { describe, expect, it } from 'vitest'
import { idsOfQueue, queueOfConsumer } from './webhook.ts'

describe('the queue of a consumer', () => {
  it('is called after both ids, which can be read from it', () => {
    expect(queueOfConsumer('orders', 'billing')).toBe('orders/billing')
    expect(queueOfConsumer('é/1', '50%\n')).toBe('é%2F1/50%25%0A')
    for (const [channelId, consumerId] of [
      ['a/b', 'c'],
      ['a', 'b/c'],
      ['%2F', '/'],
      ['%', '100%25'],
      ['𠀀 é', '\x7f\t'],
    ] as const) {
      expect(idsOfQueue(queueOfConsumer(channelId, consumerId))).toEqual([channelId, consumerId])
    }
  })

  it('is short enough for the indexes of both stores, whatever the ids', () => {
    for (const character of ['\u{10ffff}', '/', '\x01', 'é']) {
      const id = character.repeat(255)
      expect(Buffer.byteLength(queueOfConsumer(id, id))).toBeLessThan(2_200)
    }
  })

  it('is none where it was not made of two ids', () => {
    expect(['', 'a', 'a/b/c', 'a/%'].map(idsOfQueue)).toEqual([null, null, null, null])
  })
})
