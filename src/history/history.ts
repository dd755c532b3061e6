/** History of the office: append-only, one entry per operation of an engine and per act on a letter. */

import type { Batcher } from '../core/batcher.ts'
import type { Clock } from '../core/clock.ts'
import {
  boundTo,
  decodePageToken,
  encodePageToken,
  malformed,
  type PageRequest,
  type TokenFields,
} from '../core/page-token.ts'
import { type Ask, batchAnswers, weightOf } from '../store/batched-answers.ts'
import type { Database } from '../store/database.ts'
import type { Answer, Moment, OnceKey } from '../store/idempotency.ts'
import type { HistoryDetail, HistoryFilter, HistoryPage, KnownEngines } from './entry.ts'
import { getHistory } from './get.ts'
import {
  entriesOfSources,
  fileReports,
  type KnownEntries,
  type ReadReport,
  type Recorded,
  type RunReport,
  readRun,
} from './intake.ts'
import { type HistoryCursor, listHistory } from './list.ts'

const DEFAULT_LIMIT = 50

interface RecordAsk extends Ask {
  readonly report: ReadReport
  answer(recorded: Recorded): Answer
}

export class History {
  readonly #db: Database
  readonly #engines: KnownEngines
  readonly #records: Batcher<RecordAsk, Answer>

  constructor(db: Database, clock: Clock, engines: KnownEngines) {
    this.#db = db
    this.#engines = engines
    const reportsOf = (asks: readonly RecordAsk[]) => asks.map(({ report }) => report)
    this.#records = batchAnswers<RecordAsk, Moment, KnownEntries>(db.dialect, {
      within: (act) => db.transaction('history.record', (tx) => act({ tx, now: clock.now() })),
      look: ({ tx }, asks) => entriesOfSources(tx, reportsOf(asks)),
      act: async ({ tx, now }, asks, known) => {
        const recorded = await fileReports(tx, reportsOf(asks), now, known)
        return recorded.flatMap((one, i) => asks[i]?.answer(one) ?? [])
      },
    })
  }

  /** Newest first. An entry that exists during a whole walk appears in it once. */
  async list(filter: HistoryFilter = {}, page: PageRequest = {}): Promise<HistoryPage> {
    if (filter.engine != null) await this.#engines.checkKnown(filter.engine)
    if (filter.operation != null)
      await this.#engines.checkKnownOperation(filter.engine ?? null, filter.operation)
    const bound = boundTo('history', { ...filter })
    const after = page.continuationToken == null ? null : cursorFrom(bound, page.continuationToken)
    const { items, next } = await this.#db.session('history.list', (session) =>
      listHistory(session, filter, after, page.limit ?? DEFAULT_LIMIT),
    )
    const continuationToken =
      next === null ? null : encodePageToken(bound, { at: String(next.at), id: String(next.id) })
    return { items, continuationToken }
  }

  async get(engine: string, rowKey: string): Promise<HistoryDetail> {
    await this.#engines.checkKnown(engine)
    return this.#db.session('history.get', (session) => getHistory(session, engine, rowKey))
  }

  /** A known source id returns its entry. */
  async record(report: RunReport): Promise<Recorded> {
    const { body } = await this.recordOnce(report, null, (recorded) => ({ status: 200, body: recorded }))
    // Made two lines above.
    return body as Recorded
  }

  /** `record` with an idempotency key, which replays its first answer. */
  async recordOnce(
    report: RunReport,
    once: OnceKey | null,
    answer: (recorded: Recorded) => Answer,
  ): Promise<Answer> {
    this.#engines.check(report.engine)
    this.#engines.checkOwnOperation(report.engine, report.operation)
    const read = readRun(report)
    const { input, output, error } = read
    return this.#records.do({ once, report: read, answer }, weightOf(input, output, error))
  }
}

function cursorFrom(filters: TokenFields, token: string): HistoryCursor {
  const { at = '', id = '' } = decodePageToken(filters, token)
  if (!/^-?\d{1,18}$/.test(at) || !/^-?\d{1,18}$/.test(id)) throw malformed()
  return { at: BigInt(at), id: BigInt(id) }
}
