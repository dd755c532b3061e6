/**
 * The unified tables behind one interface: what holds letters and history of engines. Bartleby's own store is one such
 * holder; a table service would be another, with the same verbs and nothing else changed.
 */
import type { HistoryDetail, HistoryFilter, HistoryPage } from '../../history/entry.ts'
import type { History } from '../../history/history.ts'
import type { Recorded, RunReport } from '../../history/intake.ts'
import type { LetterSummary } from '../../letters/letter.ts'
import type { CaseFile, ExpireRequest, Letters } from '../../letters/letters.ts'
import type { LetterFilter } from '../../letters/lists/filter.ts'
import type { Page } from '../../letters/lists/list.ts'
import type { CaptureResult } from '../../letters/reports/intake.ts'
import type { FailureReport, ReportedFailure } from '../../letters/reports/report.ts'
import type { LetterKey } from '../../letters/shapes.ts'
import type { Change } from '../../letters/source.ts'

/** Which page: how long, and the token of the one before. */
export interface TablePage {
  readonly limit?: number
  readonly continuationToken?: string | null
}

export interface EngineTables {
  /** Files a failure; a known source id gives the letter it has. */
  putLetter(report: ReportedFailure | FailureReport): Promise<CaptureResult>
  getLetter(key: LetterKey): Promise<CaseFile>
  listLetters(filter?: LetterFilter, page?: TablePage): Promise<Page>
  /** Discards, expires or restores a letter. */
  patchLetter(key: LetterKey, change: Change): Promise<LetterSummary>
  /** Expires pending letters that are old; gives how many. */
  expire(request: ExpireRequest): Promise<number>
  /** Records an operation; a known source id gives the entry it has. */
  putHistory(report: RunReport): Promise<Recorded>
  getHistory(engine: string, rowKey: string): Promise<HistoryDetail>
  listHistory(filter?: HistoryFilter, page?: TablePage): Promise<HistoryPage>
}

/** The tables in Bartleby's own store. */
export const storeTables = (letters: Letters, history: History): EngineTables => ({
  putLetter: (report) => letters.capture(report),
  getLetter: (key) => letters.get(key),
  listLetters: (filter, page) => letters.list(filter, page),
  patchLetter: (key, change) => letters.change(key, change),
  expire: (request) => letters.expireOlder(request),
  putHistory: (report) => history.record(report),
  getHistory: (engine, rowKey) => history.get(engine, rowKey),
  listHistory: (filter, page) => history.list(filter, page),
})
