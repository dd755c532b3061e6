/** The history of the office: append-only, one entry per operation of an engine and per act on a letter. */
import type { Clock } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { decodePageToken, encodePageToken } from '../core/page-token.ts'
import type { Database } from '../db/database.ts'
import { type Answer, answerOnce, type OnceKey } from '../letters/idempotency.ts'
import { inOffice, type OfficeWork } from '../letters/work.ts'
import type { HistoryDetail, HistoryFilter, HistoryPage, KnownEngines } from './entry.ts'
import { getHistory } from './get.ts'
import { fileReport, insistOnError, type Recorded, RecordedMeanwhile, type RunReport } from './intake.ts'
import { type HistoryCursor, listHistory } from './list.ts'

const DEFAULT_LIMIT = 50

/** Which page: how long, and the token of the one before. */
export interface PageRequest {
  readonly limit?: number
  readonly continuationToken?: string | null
}

export class History {
  readonly #db: Database
  readonly #clock: Clock
  readonly #engines: KnownEngines

  constructor(db: Database, clock: Clock, engines: KnownEngines) {
    this.#db = db
    this.#clock = clock
    this.#engines = engines
  }

  /** A page of the entries that match, the newest first. An entry that is there for a whole walk is in it once. */
  async list(filter: HistoryFilter = {}, page: PageRequest = {}): Promise<HistoryPage> {
    if (filter.engine != null) await this.#engines.checkKnown(filter.engine)
    if (filter.operation != null)
      await this.#engines.checkKnownOperation(filter.engine ?? null, filter.operation)
    const bound = tokenFilters(filter)
    const after = page.continuationToken == null ? null : cursorFrom(bound, page.continuationToken)
    const { items, next } = await this.#db.session('history.list', (session) =>
      listHistory(session, filter, after, page.limit ?? DEFAULT_LIMIT),
    )
    const continuationToken =
      next === null ? null : encodePageToken(bound, { at: String(next.at), id: String(next.id) })
    return { items, continuationToken }
  }

  /** One entry, with its input and output; a failure when there is none. */
  async get(engine: string, rowKey: string): Promise<HistoryDetail> {
    await this.#engines.checkKnown(engine)
    return this.#db.session('history.get', (session) => getHistory(session, engine, rowKey))
  }

  /** Puts an operation on record. A source id that is known gives the entry that there is. */
  record(report: RunReport): Promise<Recorded> {
    return this.#file(report, (work) => fileReport(work.tx, report, work.now))
  }

  /** As `record`, and the first answer under an idempotency key is given again. */
  recordOnce(
    report: RunReport,
    once: OnceKey | null,
    answer: (recorded: Recorded) => Answer,
  ): Promise<Answer> {
    return this.#file(report, (work) =>
      answerOnce(work, once, async () => answer(await fileReport(work.tx, report, work.now))),
    )
  }

  async #file<T>(report: RunReport, act: (work: OfficeWork) => Promise<T>): Promise<T> {
    this.#engines.check(report.engine)
    this.#engines.checkOwnOperation(report.engine, report.operation)
    insistOnError(report)
    const attempt = () => inOffice(this.#db, this.#clock, 'history.record', act)
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof RecordedMeanwhile)) throw error
      // The twin has committed: this time its entry is found.
      return attempt()
    }
  }
}

/** What a token is bound to. */
function tokenFilters({ from, to, ...texts }: HistoryFilter): Record<string, string> {
  const fields = Object.entries({ ...texts, from: from?.toString(), to: to?.toString() })
  const given = fields.filter((field): field is [string, string] => field[1] != null)
  return { ...Object.fromEntries(given), list: 'history' }
}

function cursorFrom(filters: Record<string, string>, token: string): HistoryCursor {
  const { at = '', id = '' } = decodePageToken(filters, token)
  if (!/^-?\d{1,18}$/.test(at) || !/^-?\d{1,18}$/.test(id)) {
    throw failure('continuation_token_invalid', { reason: 'it is malformed' })
  }
  return { at: BigInt(at), id: BigInt(id) }
}
