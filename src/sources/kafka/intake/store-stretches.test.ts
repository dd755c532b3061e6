import { expect, it } from 'vitest'
import { stretchesOf } from './known-records.ts'

const at = (partition: number, ...offsets: number[]) =>
  offsets.map((offset) => ({ topic: 'dlq', partition, offset: BigInt(offset) }))

const shown = (places: Parameters<typeof stretchesOf>[0]): string[] =>
  stretchesOf(places)
    .map(({ partition, first, last }) => `${partition}:${first}-${last}`)
    .sort()

it('are as long as offsets follow each other', () => {
  expect(shown(at(0, 1, 2, 3, 5, 6))).toEqual(['0:1-3', '0:5-6'])
})

it('are those of each partition, however they are mixed', () => {
  expect(shown([...at(0, 1), ...at(1, 7), ...at(0, 2), ...at(1, 8)])).toEqual(['0:1-2', '1:7-8'])
})

it('have each place, also those that come twice or out of order', () => {
  expect(shown(at(0, 5, 6, 6, 5, 2, 7))).toEqual(['0:2-2', '0:5-6', '0:7-7'])
})

it('are none of nothing', () => {
  expect(stretchesOf([])).toEqual([])
})
