import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatRuns, parseRuns } from './lease.ts'

const serials = fc
  .uniqueArray(
    fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
  )
  .map((all) => all.sort((a, b) => a - b))

describe('runs of serials', () => {
  it('write neighbours as one run', () => {
    expect(formatRuns([7, 8, 9, 12])).toBe('7,9,12,12')
    expect(formatRuns(Array.from({ length: 1_000 }, (_, i) => 5 + i))).toBe('5,1004')
    expect(formatRuns([])).toBe('')
  })

  it('read back what was written', () => {
    fc.assert(
      fc.property(serials, (all) => {
        expect(parseRuns(formatRuns(all))).toEqual(all)
      }),
    )
  })

  it('are as few as can be', () => {
    fc.assert(
      fc.property(serials, (all) => {
        const gaps = all.filter((serial, i) => i === 0 || serial !== (all[i - 1] ?? 0) + 1).length
        expect(formatRuns(all).split(',').filter(Boolean)).toHaveLength(2 * gaps)
      }),
    )
  })
})
