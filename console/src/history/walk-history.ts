/** Walks all pages of history that match, up to a limit. */
import { call } from '../api/call.ts'
import type { HistoryItem, Page } from '../api/types.ts'
import type { HistoryAsked } from './history-filter.ts'

/** More than this is a job for SQL: `engineHistory` is a view for that. */
export const MOST_EXPORTED = 10_000
/** The most that the server gives at once. */
const PAGE = 100

export interface Walked {
  readonly entries: readonly HistoryItem[]
  /** There are more, which were left out. */
  readonly isCut: boolean
}

export type ReadPage = (token: string | null) => Promise<Page<HistoryItem>>

/** The pages of a filter, as the server gives them. */
export const pagesOf =
  (filter: HistoryAsked, signal: AbortSignal): ReadPage =>
  (token) =>
    call('GET', '/api/history', { query: { ...filter, limit: PAGE, continuationToken: token }, signal })

/** Reads page after page; `progressed` is told how many there are so far. Ends when the reading is aborted. */
export async function walkHistory(read: ReadPage, progressed: (count: number) => void): Promise<Walked> {
  const entries: HistoryItem[] = []
  for (let token: string | null = null; ; ) {
    const page = await read(token)
    entries.push(...page.items)
    progressed(Math.min(entries.length, MOST_EXPORTED))
    token = page.continuationToken
    if (token === null || entries.length >= MOST_EXPORTED)
      return {
        entries: entries.slice(0, MOST_EXPORTED),
        isCut: token !== null || entries.length > MOST_EXPORTED,
      }
  }
}

/** One JSON object per line. */
export const ndjsonOf = (entries: readonly HistoryItem[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
