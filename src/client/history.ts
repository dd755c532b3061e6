/** A typed client of the history: every operation of an engine and every act on a letter. Names are those of the wire. */
import type { HistoryDetail, HistoryItem, HistoryQuery, RecordRequest } from '../history/shapes.ts'
import { OfficeCalls, type Page, type PageRequest, pathTo, type WriteOptions, walkPages } from './envelope.ts'
import type { WithTimes } from './letter-types.ts'
import type { CallOptions } from './transport.ts'

export type { HistoryDetail, HistoryItem, HistoryStatus, RecordRequest } from '../history/shapes.ts'

/** All that is given must hold. */
export interface HistoryFilter extends WithTimes<HistoryQuery, 'fromDate' | 'toDate'> {}

export interface HistoryListRequest extends HistoryFilter, PageRequest {}

const HISTORY = '/api/history'

/**
 * @example
 * const history = new HistoryClient({ url: 'http://127.0.0.1:1853' })
 * const { items } = await history.list({ engine: 'hmac', status: 'Failed', limit: 10 })
 */
export class HistoryClient extends OfficeCalls {
  /** One page of the entries that match, the newest first. */
  list(request: HistoryListRequest = {}, options?: CallOptions): Promise<Page<HistoryItem>> {
    return this.fetchPage(HISTORY, { ...request }, options)
  }

  /** All entries that match, the newest first. */
  walk(filter: HistoryFilter & { limit?: number } = {}, options?: CallOptions): AsyncGenerator<HistoryItem> {
    return walkPages(filter.limit, (page) => this.list({ ...filter, ...page }, options))
  }

  /** An entry with its input and output. */
  get(entry: { engine: string; rowKey: string }, options?: CallOptions): Promise<HistoryDetail> {
    return this.fetch(pathTo(HISTORY, entry.engine, entry.rowKey), {}, options)
  }

  /** Records an operation. A known `sourceId` gives the existing entry. */
  record(request: RecordRequest, options?: WriteOptions): Promise<HistoryItem> {
    return this.post(HISTORY, request, options)
  }
}
