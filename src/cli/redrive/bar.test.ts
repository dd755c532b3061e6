import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PLAIN } from '../../terminal/terminal.ts'
import { redriveBar, share } from './watch-frame.ts'

describe('the bar', () => {
  it('gives every letter its place', () => {
    const counts = {
      planned: 100,
      sent: 50,
      skipped: 10,
      failed: 10,
      remaining: 30,
      confirmed: 30,
      returned: 10,
      unconfirmed: 10,
    }
    expect(redriveBar(counts, 10, PLAIN)).toBe('███▓▚▒▒░░░')
  })

  it('shows the smallest part, and nothing where there is nothing', () => {
    expect(share([1, 0, 999_999], 20)).toEqual([1, 0, 19])
    expect(share([0, 0], 20)).toEqual([0, 0])
  })

  it('has as many cells as asked for, one at least for what is there, and none for what is not', () => {
    fc.assert(
      fc.property(
        fc
          .array(fc.nat(1_000_000), { minLength: 1, maxLength: 6 })
          .filter((counts) => counts.some((count) => count > 0)),
        fc.integer({ min: 6, max: 80 }),
        (counts, cells) => {
          const shares = share(counts, cells)
          expect(shares.reduce((sum, part) => sum + part, 0)).toBe(cells)
          for (const [index, part] of shares.entries()) expect(part > 0).toBe((counts[index] ?? 0) > 0)
        },
      ),
    )
  })
})
