import { expect, it } from 'vitest'
import { sparkline } from './sparkline.ts'

it('draws numbers in proportion, and never something as nothing', () => {
  expect(sparkline([0, 1, 50, 100])).toBe('▁▂▅█')
  expect(sparkline([0, 0])).toBe('▁▁')
  expect(sparkline([])).toBe('')
})
