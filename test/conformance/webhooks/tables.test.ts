/** The tables of the vectors about what is computed without a server: delays, ids, cursors, priorities and times. */
import { describe, expect, it } from 'vitest'
import { instant } from '../../../src/core/clock.ts'
import { parseXid, secondsOfXid } from '../../../src/core/xid.ts'
import { retryDelaySeconds } from '../../../src/sources/webhooks/courier/outcome.ts'
import { Refused } from '../../../src/sources/webhooks/refusal.ts'
import { decodeCursor, encodeCursor } from '../../../src/sources/webhooks/registry/pages.ts'
import { readPriority, readScheduledFor } from '../../../src/sources/webhooks/routes/broadcast.ts'
import { VECTORS } from './vectors.ts'

describe('the vectors', () => {
  it.each(VECTORS.backoff)('of delays $list', ({ list, delays }) => {
    expect(delays.map((_, i) => retryDelaySeconds(list, i + 1))).toEqual(delays)
  })

  it.each(VECTORS.xid)('of the id $text', ({ text, unixSeconds }) => {
    const id = parseXid(text)
    expect(id === null ? undefined : secondsOfXid(id)).toBe(unixSeconds)
  })

  it.each(VECTORS.cursor)('of the cursor $base64', ({ id, createdAt, base64 }) => {
    const place = {
      id: parseXid(id) ?? expect.fail('it is an id'),
      at: instant(BigInt(Date.parse(createdAt)) * 1000n),
    }
    expect(encodeCursor(place)).toBe(base64)
    expect(decodeCursor(base64)).toEqual(place)
  })

  it.each(Object.entries(VECTORS.priority))('of the priority %j', (text, priority) => {
    expect(readPriority(text)).toBe(priority)
  })

  const read = (text: string) => readScheduledFor(text, instant(0n), 2)

  it.each(VECTORS.scheduledFor.valid)('of the time %j', (text) => {
    expect(read(text)).toBe(BigInt(Date.parse(text)) * 1000n)
  })

  it.each(VECTORS.scheduledFor.invalid)('of what is no time: %j', (text) => {
    expect(() => read(text)).toThrow(Refused)
  })
})
