/** A typed client of the history: every operation of an engine and every act on a letter. As the letter client, with the names of the wire. */
import type { TextEncoding } from './bytes.ts'
import {
  type Page,
  type PageRequest,
  pathTo,
  read,
  readPage,
  type WriteOptions,
  walkPages,
  write,
} from './envelope.ts'
import type { LetterFilter, LetterKey } from './letter-types.ts'
import type { Time } from './times.ts'
import { type CallOptions, type ConnectionOptions, type Endpoint, endpointOf } from './transport.ts'

const HISTORY = '/api/history'

/**
 * @example
 * const history = new HistoryClient({ url: 'http://127.0.0.1:1853' })
 * const { items } = await history.list({ engine: 'hmac', status: 'Failed', limit: 10 })
 */
export class HistoryClient {
  readonly #endpoint: Endpoint

  constructor(options: ConnectionOptions) {
    this.#endpoint = endpointOf(options)
  }

  /** One page of the entries that match, the newest first. */
  list(request: HistoryListRequest = {}, options?: CallOptions): Promise<Page<HistoryItem>> {
    return readPage(this.#endpoint, HISTORY, { ...request }, options)
  }

  /** All entries that match, the newest first. */
  walk(filter: HistoryFilter & { limit?: number } = {}, options?: CallOptions): AsyncGenerator<HistoryItem> {
    return walkPages(filter.limit, (page) => this.list({ ...filter, ...page }, options))
  }

  /** An entry with its input and output. */
  get(entry: { engine: string; rowKey: string }, options?: CallOptions): Promise<HistoryDetail> {
    return read(this.#endpoint, pathTo(HISTORY, entry.engine, entry.rowKey), {}, options)
  }

  /** Puts an operation on record. A known `sourceId` gives the entry that there is. */
  record(request: RecordRequest, options?: WriteOptions): Promise<HistoryItem> {
    return write(this.#endpoint, 'POST', HISTORY, request, options)
  }
}

export type HistoryStatus = 'Succeeded' | 'Failed'

/** Which entries; what is given must all hold. */
export interface HistoryFilter extends Pick<LetterFilter, 'engine' | 'instanceId' | 'correlationId'> {
  readonly status?: HistoryStatus
  readonly operation?: string
  readonly fromDate?: Time
  readonly toDate?: Time
}

export interface HistoryListRequest extends HistoryFilter, PageRequest {}

/** An operation of an engine, or an act on a letter, as lists show it: without input and output. */
export interface HistoryItem {
  readonly engine: string
  readonly rowKey: string
  readonly instanceId: string
  readonly operation: string
  readonly status: HistoryStatus
  readonly durationMs: number
  readonly createdAtUtc: string
  readonly correlationId: string
  /** Who did it; null where nobody is named. */
  readonly actor: string | null
}

export interface HistoryDetail extends HistoryItem {
  readonly input: string | null
  readonly inputEncoding: TextEncoding | null
  readonly output: string | null
  readonly outputEncoding: TextEncoding | null
  readonly error: string | null
  readonly notes: string | null
  /** The letter that it concerns, while that is retained. */
  readonly letter: LetterKey | null
}

/** An operation to put on record. */
export interface RecordRequest {
  readonly engine: string
  readonly operation: string
  readonly status: HistoryStatus
  /** A whole number. */
  readonly durationMs: number
  /** Left out: `publisher`. */
  readonly instanceId?: string
  /** A text is kept as it is, any other value as JSON. */
  readonly input?: unknown
  readonly output?: unknown
  /** What failed; needed when `status` is `Failed`. */
  readonly error?: string
  readonly correlationId?: string
  /** Yours for this operation: the same one twice is one entry. */
  readonly sourceId?: string
}
