import { describe, expect, it } from 'vitest'
import type { HistoryItem } from '../api/types.ts'
import { MOST_EXPORTED, ndjsonOf, type ReadPage, walkHistory } from './walk-history.ts'

const entry = (number: number): HistoryItem => ({
  engine: 'hmac',
  rowKey: String(number),
  instanceId: `order-${number}`,
  operation: 'rotate',
  status: 'Succeeded',
  durationMs: 5,
  createdAtUtc: '2027-01-15T08:00:00.000000Z',
  correlationId: 'c',
  actor: null,
})

/** Pages of a hundred, as the server gives them. */
const pagesOf =
  (total: number): ReadPage =>
  async (token) => {
    const from = Number(token ?? 0)
    const end = Math.min(from + 100, total)
    return {
      items: Array.from({ length: end - from }, (_, place) => entry(from + place)),
      continuationToken: end < total ? String(end) : null,
    }
  }

describe('an export of history', () => {
  it('walks all pages and tells how far it is', async () => {
    const told: number[] = []
    const { entries, isCut } = await walkHistory(pagesOf(250), (count) => told.push(count))
    expect(entries.map(({ rowKey }) => rowKey)).toEqual(
      Array.from({ length: 250 }, (_, place) => String(place)),
    )
    expect([told, isCut]).toEqual([[100, 200, 250], false])
  })

  it('goes on over a page that found nothing', async () => {
    const pages = [
      { items: [], continuationToken: 'more' },
      { items: [entry(1)], continuationToken: null },
    ]
    const { entries } = await walkHistory(
      async (token) => pages[token === null ? 0 : 1] ?? { items: [], continuationToken: null },
      () => {},
    )
    expect(entries).toHaveLength(1)
  })

  it('ends at its limit, and says that there is more', async () => {
    const { entries, isCut } = await walkHistory(pagesOf(MOST_EXPORTED + 1), () => {})
    expect([entries.length, isCut]).toEqual([MOST_EXPORTED, true])
    expect((await walkHistory(pagesOf(MOST_EXPORTED), () => {})).isCut).toBe(false)
  })

  it('ends when it is stopped', async () => {
    const stop = new AbortController()
    const read: ReadPage = async (token) => {
      if (token !== null) stop.abort()
      stop.signal.throwIfAborted()
      return pagesOf(1_000)(token)
    }
    await expect(walkHistory(read, () => {})).rejects.toThrow(stop.signal.reason)
  })

  it('has a line for each entry', () => {
    const text = ndjsonOf([entry(1), entry(2)])
    expect(text.endsWith('\n')).toBe(true)
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([entry(1), entry(2)])
  })
})
