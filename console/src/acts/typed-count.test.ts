import { describe, expect, it } from 'vitest'
import type { RedriveAction, RedriveNumbers } from '../api/redrive-types.ts'
import { countRefusal } from './typed-count.tsx'

const planOf = (action: RedriveAction, eligible: number) => {
  // Only the number that is asked for.
  const numbers = { eligible } as RedriveNumbers
  return { action, numbers }
}

describe('the number of letters to discard', () => {
  it('is typed as it is shown, or without its commas, and nothing else will do', () => {
    const plan = planOf('discard', 1_204)
    expect(countRefusal(plan, '1,204')).toBeNull()
    expect(countRefusal(plan, ' 1204 ')).toBeNull()
    for (const typed of ['', '-1204', '1204 letters', '12,04', '1203'])
      expect(countRefusal(plan, typed)).toBe('Type 1,204 first.')
  })

  it('is not asked for one letter, nor for other acts; a plan without letters is not started', () => {
    expect(countRefusal(planOf('discard', 1), '')).toBeNull()
    expect(countRefusal(planOf('retry', 5), '')).toBeNull()
    expect(countRefusal(planOf('retry', 0), '')).toBe('The plan holds no letters.')
  })
})
