import { describe, expect, it } from 'vitest'
import { roundDuration, shortDuration } from './go-duration.ts'

describe('a duration of the queue API', () => {
  it('is shown without the units that are zero', () => {
    const given = ['24h0m0s', '1h30m0s', '10m0s', '1m30s', '90s', '1h0m5s', '0s']
    expect(given.map(shortDuration)).toEqual(['24h', '1h30m', '10m', '1m30s', '90s', '1h0m5s', '0s'])
  })

  it('is rounded where nobody needs its fractions', () => {
    expect(['20.149064s', '1m0.5s', '840.2ms', 'soon'].map(roundDuration)).toEqual([
      '20.1 s',
      '1 min',
      '840 ms',
      'soon',
    ])
  })
})
