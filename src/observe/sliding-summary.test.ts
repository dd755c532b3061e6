import { describe, expect, it } from 'vitest'
import { SlidingSummary } from './metrics.ts'

const summary = () => new SlidingSummary('taken', 'Seconds.')

describe('a sliding summary', () => {
  it('tells quantiles, sum and count per label', () => {
    const taken = summary()
    for (let value = 1; value <= 100; value++) taken.observe('/a', value)
    taken.observe('/b', 0.5)
    expect(taken.text()).toBe(
      [
        '# HELP taken Seconds.',
        '# TYPE taken summary',
        'taken{path="/a",quantile="0.5"} 50',
        'taken{path="/a",quantile="0.99"} 99',
        'taken_sum{path="/a"} 5050',
        'taken_count{path="/a"} 100',
        'taken{path="/b",quantile="0.5"} 0.5',
        'taken{path="/b",quantile="0.99"} 0.5',
        'taken_sum{path="/b"} 0.5',
        'taken_count{path="/b"} 1',
        '',
      ].join('\n'),
    )
  })

  it('forgets what is old in its quantiles, but not in its sum', () => {
    const taken = summary()
    taken.observe('/a', 1_000_000)
    for (let count = 0; count < 1_024; count++) taken.observe('/a', 1)
    expect(taken.text()).toContain('taken{path="/a",quantile="0.99"} 1\n')
    expect(taken.text()).toContain('taken_sum{path="/a"} 1001024')
  })
})
