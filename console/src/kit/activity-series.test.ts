import { describe, expect, it } from 'vitest'
import type { Activity } from '../api/types.ts'
import { axisMark, bucketAt, busyBuckets, edgesOf, spoken, stretch } from './activity-series.ts'

const none = [0, 0, 0]
const activity: Activity = {
  range: '24h',
  bucketSeconds: 900,
  fromUtc: '2026-11-15T23:30:00.000000Z',
  toUtc: '2026-11-16T00:15:00.000000Z',
  series: {
    arrived: [4, 0, 1],
    retried: [0, 0, 2],
    confirmed: none,
    returned: none,
    discarded: none,
    expired: none,
  },
}
const FROM = Date.parse(activity.fromUtc) / 1_000

describe('activity over time', () => {
  it('has an edge more than it has stretches', () => {
    expect(edgesOf(activity)).toEqual([FROM, FROM + 900, FROM + 1_800, FROM + 2_700])
  })

  it('finds the stretch of a moment', () => {
    expect(bucketAt(activity, FROM + 899)).toBe(0)
    expect(bucketAt(activity, FROM + 900)).toBe(1)
    expect(bucketAt(activity, FROM - 1)).toBeNull()
    expect(bucketAt(activity, FROM + 2_700)).toBeNull()
  })

  it('lists stretches in which something happened, the newest first', () => {
    expect(busyBuckets(activity, ['arrived', 'retried'])).toEqual([2, 0])
    expect(busyBuckets(activity, ['confirmed'])).toEqual([])
  })

  it('marks hours with the time and midnight with the day', () => {
    expect(axisMark(FROM, 1_800, 'utc')).toBe('23:30')
    expect(axisMark(FROM + 1_800, 1_800, 'utc')).toBe('16 Nov')
    expect(axisMark(FROM, 86_400, 'utc')).toBe('15 Nov')
  })

  it('says a stretch in words', () => {
    expect(stretch(activity, 1, 'utc')).toBe('15 Nov 23:45–00:00 UTC')
  })

  it('is told as a whole', () => {
    expect(spoken(activity, ['arrived', 'retried'])).toBe('5 arrived, 2 retried')
  })
})
