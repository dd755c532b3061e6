import { expect, it } from 'vitest'
import { ageOf, secondsOf, sparkline } from './words.ts'

const NOW = Date.parse('2027-03-10T12:00:00Z')

it.each([
  ['2027-03-10T11:59:59.500000Z', '0s'],
  ['2027-03-10T11:59:01.000000Z', '59s'],
  ['2027-03-10T11:58:59.000000Z', '1m'],
  ['2027-03-09T12:00:01.000000Z', '23h'],
  ['2027-01-10T12:00:00.000000Z', '59d'],
  ['2027-03-10T13:00:00.000000Z', '0s'],
  [null, '-'],
])('%j was %s ago', (instant, age) => {
  expect(ageOf(instant, NOW)).toBe(age)
})

it('shows an instant to the second', () => {
  expect(secondsOf('2027-03-10T11:59:59.500000Z')).toBe('2027-03-10 11:59:59Z')
})

it('draws numbers in proportion, and never something as nothing', () => {
  expect(sparkline([0, 1, 50, 100])).toBe('▁▂▅█')
  expect(sparkline([0, 0])).toBe('▁▁')
  expect(sparkline([])).toBe('')
})
