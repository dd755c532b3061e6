/** Everything that can be asked of letters. Finds the letter, locks it and hands it on; each act is one transaction in a file of its own. */

import { type Clock, type Instant, later } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import type { PageRequest } from '../core/page-token.ts'
import { ZERO_TIME } from '../core/timestamp.ts'
import type { Xid } from '../core/xid.ts'
import { historyOfLetter, type LetterEvent } from '../history/get.ts'
import type { Database, Session, Transaction } from '../store/database.ts'
import { type Answer, answerOnce, keptAnswer, type OnceKey } from '../store/idempotency.ts'
import type { Run } from '../work/run.ts'
import { runFields } from '../work/view.ts'
import type { SourceName } from './kinds.ts'
import type { Edit, Failure, Letter, LetterSummary, Outgoing, Retry, SendReceipt, Settled } from './letter.ts'
import { lockLetter, readFailures, readLetterById } from './lists/detail.ts'
import type { LetterFilter } from './lists/filter.ts'
import { listLetters, type Page } from './lists/list.ts'
import { DAY_US } from './numbers/counts.ts'
import { LetterNumbers } from './numbers/letter-numbers.ts'
import type { Registers } from './registers.ts'
import { type CaptureResult, ReportIntake } from './reports/intake.ts'
import {
  type EngineNames,
  type FailureReport,
  inProcessReport,
  type ReportedFailure,
} from './reports/report.ts'
import { expiryKind, expiryRequest } from './retention/expire.ts'
import { DEFAULT_RETENTION_DAYS, keptUntil } from './retention/retention.ts'
import type { LetterKey } from './shapes.ts'
import {
  type Change,
  changeLetter,
  type Edits,
  findNamed,
  isOutside,
  type LetterSource,
  NO_EDITS,
  type OutsideSource,
  onlyOne,
  outgoingOf,
  type Sent,
  sendBack,
} from './source.ts'
import { insistOnStatus } from './transitions.ts'
import { inOffice, type OfficeRuns, type OfficeWork } from './work.ts'

interface LettersOptions {
  readonly registers: Registers
  readonly sources: ReadonlyMap<SourceName, LetterSource>
  readonly engines: EngineNames
  readonly runs: OfficeRuns
  /** For resolved and expired letters. Default 90. */
  readonly retentionDays?: number
}

interface ExpireRequest {
  readonly olderThanDays: number
  /** null: every engine. */
  readonly engine: string | null
  readonly actor: string
}

export interface CaseFile {
  readonly letter: Letter
  /** Oldest first; the last one stands on the letter. */
  readonly failures: readonly Failure[]
  /** Newest first, at most a hundred. */
  readonly history: readonly LetterEvent[]
  /** The earliest end of its retention; null while pending. */
  readonly restorableUntil: Instant | null
  /** What its source has to say of it now, a sentence each. */
  readonly remarks: readonly string[]
}

export interface Preview {
  readonly outgoing: Outgoing
  readonly edited: boolean
}

const MAX_EVENTS = 100
/** A call waits so long for an expiry before it answers with the run. */
const ANSWER_WAIT_US = 30_000_000n
const DEFAULT_LIMIT = 50

export class Letters {
  readonly engines: EngineNames
  readonly retentionDays: number
  readonly numbers: LetterNumbers
  readonly #db: Database
  readonly #clock: Clock
  readonly #sources: ReadonlyMap<SourceName, LetterSource>
  readonly #runs: OfficeRuns
  readonly #intake: ReportIntake

  constructor(db: Database, clock: Clock, options: LettersOptions) {
    const { registers, sources, engines, runs } = options
    this.#db = db
    this.#clock = clock
    this.#sources = sources
    this.retentionDays = options.retentionDays ?? DEFAULT_RETENTION_DAYS
    this.engines = engines
    this.#runs = runs
    this.numbers = new LetterNumbers(db, clock, engines)
    runs.define(expiryKind({ sources, labels: this.numbers.labels }))
    const sourceOf = this.#sourceOf.bind(this)
    this.#intake = new ReportIntake(db, clock, { registers, engines, sourceOf })
  }

  /** Newest failure first. A letter that exists during a whole walk appears in it once. */
  async list(filter: LetterFilter = {}, page: PageRequest = {}): Promise<Page> {
    if (filter.engine !== undefined) await this.engines.checkKnown(filter.engine)
    const { limit = DEFAULT_LIMIT, continuationToken: token = null } = page
    return listLetters(this.#db, filter, { limit, token, now: this.#clock.now() }, this.numbers.labels)
  }

  get(key: LetterKey): Promise<CaseFile> {
    return this.#db.snapshot('letters.get', async (session) => {
      const letter = await this.#read(session, key)
      return {
        letter,
        failures: await readFailures(session, letter),
        history: await historyOfLetter(session, letter.id, MAX_EVENTS),
        restorableUntil: keptUntil(letter, this.retentionDays),
        remarks: (await this.#sources.get(letter.source)?.remarks?.(session, letter)) ?? [],
      }
    })
  }

  /** Files a failure from elsewhere: as a new letter or on the letter of its source id, unless it is known. */
  async capture(report: ReportedFailure | FailureReport): Promise<CaptureResult> {
    // Sources of the office parse their own reports.
    const isRead = 'payload' in report && 'source' in report
    const read = isRead ? report : inProcessReport(report, { engines: this.engines, now: this.#clock.now() })
    const { body } = await this.captureOnce(null, [read], ([result]) => ({ status: 200, body: result }))
    // Made two lines above.
    return body as CaptureResult
  }

  /** Files failures in one transaction, which others may share; a key replays its first answer for a day. */
  async captureOnce(
    once: OnceKey | null,
    reports: readonly FailureReport[],
    answer: (results: readonly CaptureResult[]) => Answer,
  ): Promise<Answer> {
    return this.#intake.file({ once, reports, answer })
  }

  async retry(key: LetterKey, retry: Retry): Promise<SendReceipt> {
    return this.#inOrOutside(
      () => inOffice(this.#db, this.#clock, 'letters.retry', (work) => this.retryIn(work, key, retry)),
      ({ letter, source }) => sendOut(letter, source, retry),
    )
  }

  /** Retry inside a transaction; fails with `LeavesOutside` for letters that leave over a network. */
  async retryIn(work: OfficeWork, key: LetterKey, retry: Retry): Promise<SendReceipt> {
    const letter = await this.#lock(work.tx, key)
    const source = this.#sourceOf(letter.source)
    if (isOutside(source)) throw new LeavesOutside(letter, source)
    insistOnStatus(letter, 'retry')
    const edits = editsOf(letter, retry.edit)
    return receiptOf(onlyOne(await sendBack(work, source, [letter], edits, retry)))
  }

  /** Retry with a key, which replays its first answer for a day. */
  async retryOnce(once: OnceKey | null, key: LetterKey, retry: Retry): Promise<Answer> {
    const answerWith = (body: SendReceipt): Answer => ({ status: 200, body })
    // Stored with the end of the retry: after a crash the letter is not pending any more.
    const settled: Settled = async (work, receipt) => {
      await answerOnce(work, once, async () => answerWith(receipt))
    }
    return this.#inOrOutside(
      () =>
        this.once('letters.retry', once, async (work) => answerWith(await this.retryIn(work, key, retry))),
      ({ letter, source }) =>
        this.onceDone(once, async () => answerWith(await sendOut(letter, source, { ...retry, settled }))),
    )
  }

  /** Writes nothing. */
  async preview(key: LetterKey, edit: Edit | null): Promise<Preview> {
    const letter = await this.#db.session('letters.preview', (session) => this.#read(session, key))
    insistOnStatus(letter, 'retry')
    const read = this.#db.session.bind(this.#db)
    const rendered = await this.#sourceOf(letter.source).render(read, [letter], editsOf(letter, edit))
    return {
      outgoing: outgoingOf(letter, onlyOne(rendered)),
      edited: edit !== null || letter.editedPayload !== null,
    }
  }

  change(key: LetterKey, change: Change): Promise<LetterSummary> {
    return inOffice(this.#db, this.#clock, 'letters.change', (work) => this.changeIn(work, key, change))
  }

  async changeIn(work: OfficeWork, key: LetterKey, change: Change): Promise<LetterSummary> {
    const letter = await this.#lock(work.tx, key)
    return changeLetter(work, this.#sourceOf(letter.source), letter, change)
  }

  /** Expires pending letters whose last failure is `olderThanDays` ago, as a run; returns how many when it is over. */
  async expireOlder(request: ExpireRequest): Promise<number> {
    const { id } = await this.#runs.inWork('letters.expire', (work) => this.#beginExpiry(work, request))
    return this.#runs.done(id)
  }

  /** For callers that cannot wait: `{ expired }`, or the run while it goes on. A key replays the answer of the same run. */
  async expireOnce(once: OnceKey | null, request: ExpireRequest): Promise<Answer> {
    const { status, body } = await this.once('letters.expire', once, async (work) => {
      const { id } = await this.#beginExpiry(work, request)
      return { status: 202, body: { run: id } }
    })
    // Kept by versions without runs.
    if (status === 200) return { status, body }
    // As kept above.
    const run = await this.#runs.over((body as { readonly run: Xid }).run, ANSWER_WAIT_US)
    if (run === null || run.state === 'done') return { status: 200, body: { expired: run?.done ?? 0 } }
    return { status: 202, body: runFields(run) }
  }

  async #beginExpiry(work: OfficeWork, { olderThanDays, engine, actor }: ExpireRequest): Promise<Run> {
    if (engine !== null) await this.engines.checkKnown(engine, work.tx)
    const before = daysBefore(work.now, olderThanDays)
    return this.#runs.begin(work, expiryRequest({ before, engine, actor }))
  }

  /** Runs an act in one transaction; a key replays its first answer for a day. */
  once(verb: string, once: OnceKey | null, act: (work: OfficeWork) => Promise<Answer>): Promise<Answer> {
    return inOffice(this.#db, this.#clock, verb, (work) => answerOnce(work, once, () => act(work)))
  }

  /** For acts of many transactions: the answer is kept when all are done. */
  async onceDone(once: OnceKey | null, act: () => Promise<Answer>): Promise<Answer> {
    if (once === null) return act()
    const known = await this.#db.session('idempotency.read', (session) =>
      keptAnswer(session, once, this.#clock.now()),
    )
    if (known !== null) return known
    const answer = await act()
    return inOffice(this.#db, this.#clock, 'idempotency.keep', (work) =>
      answerOnce(work, once, async () => answer),
    )
  }

  async #read(session: Session, key: LetterKey): Promise<Letter> {
    const id = await findNamed(session, this.#sources, key)
    const letter = id === null ? null : await readLetterById(session, id)
    return letter ?? this.#refuse(session, key)
  }

  /** An unknown engine is a refusal of its own. */
  async #refuse(session: Session, { engine, rowKey }: LetterKey): Promise<never> {
    await this.engines.checkKnown(engine, session)
    throw failure('letter_unknown', { engine, rowKey })
  }

  async #lock(tx: Transaction, key: LetterKey): Promise<Letter> {
    const id = await findNamed(tx, this.#sources, key)
    const letter = id === null ? null : await lockLetter(tx, id)
    return letter ?? this.#refuse(tx, key)
  }

  /** Inside a transaction; letters that turn out to leave over a network are sent after its rollback. */
  async #inOrOutside<T>(
    within: () => Promise<T>,
    outside: (leaving: LeavesOutside) => Promise<T>,
  ): Promise<T> {
    try {
      return await within()
    } catch (error) {
      if (!(error instanceof LeavesOutside)) throw error
      return outside(error)
    }
  }

  #sourceOf(source: SourceName): LetterSource {
    const found = this.#sources.get(source)
    if (found === undefined) throw new Error(`no source is named '${source}'`)
    return found
  }
}

/** Ends a transaction that cannot send a letter, with nothing written. */
class LeavesOutside extends Error {
  readonly letter: Letter
  readonly source: OutsideSource

  constructor(letter: Letter, source: OutsideSource) {
    super(`letters of '${source.name}' are not sent within a transaction`)
    this.letter = letter
    this.source = source
  }
}

const sendOut = async (letter: Letter, source: OutsideSource, retry: Retry): Promise<SendReceipt> =>
  receiptOf(onlyOne(await source.sendOutside([letter], editsOf(letter, retry.edit), retry)))

const editsOf = ({ id }: Letter, edit: Edit | null): Edits =>
  edit === null ? NO_EDITS : new Map([[id, edit]])

const receiptOf = ({ messageId, queue }: Sent): SendReceipt => ({ messageId, queue })

/** Not before the first instant. */
function daysBefore(now: Instant, days: number): Instant {
  const before = later(now, -BigInt(days) * DAY_US)
  return before < ZERO_TIME ? ZERO_TIME : before
}
