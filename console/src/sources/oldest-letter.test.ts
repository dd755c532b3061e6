import { describe, expect, it } from 'vitest'
import type { LetterItem } from '../api/types.ts'
import { oldestLetter, type ReadBefore } from './oldest-letter.ts'

const PAGE = 5

/** Letters that failed at these milliseconds, listed as the server does: the newest first, a page at a time. */
function listOf(times: readonly number[]) {
  const letters = [...times]
    .sort((a, b) => b - a)
    .map((at, place) => ({
      rowKey: `${at}-${times.length - place}`,
      lastFailureAtUtc: new Date(at).toISOString(),
    }))
  let reads = 0
  const read: ReadBefore = async (before, token) => {
    reads++
    const matching = letters.filter((letter) => before === null || letter.lastFailureAtUtc < before)
    const from = token === null ? 0 : Number(token)
    const end = from + PAGE
    return {
      // Only what the search looks at.
      items: matching.slice(from, end) as unknown as LetterItem[],
      continuationToken: end < matching.length ? String(end) : null,
    }
  }
  return { read, reads: () => reads }
}

const NOW = 1_800_000_000_000

describe('the oldest letter', () => {
  it('is nothing where there are none', async () => {
    expect(await oldestLetter(listOf([]).read)).toBeNull()
  })

  it('is the last of a page that holds them all', async () => {
    const { read, reads } = listOf([NOW, NOW - 9, NOW - 4])
    expect((await oldestLetter(read))?.rowKey).toBe(`${NOW - 9}-1`)
    expect(reads()).toBe(1)
  })

  it('is found among many in few reads', async () => {
    const { read, reads } = listOf(Array.from({ length: 20_000 }, (_, place) => NOW - place * 61_000))
    expect((await oldestLetter(read))?.rowKey).toBe(`${NOW - 19_999 * 61_000}-1`)
    expect(reads()).toBeLessThan(40)
  })

  it('is found where one lies far behind all others', async () => {
    const { read } = listOf([...Array.from({ length: 500 }, (_, place) => NOW - place), 86_400_000])
    expect((await oldestLetter(read))?.rowKey).toBe('86400000-1')
  })

  it('is found where more than a page failed at the same moment', async () => {
    const { read } = listOf(Array.from({ length: 17 }, () => NOW))
    expect((await oldestLetter(read))?.rowKey).toBe(`${NOW}-1`)
  })
})
