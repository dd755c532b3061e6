/** A typed client of the letters: find them, understand them, send them back. One method per call. */
import { payloadFields } from './bytes.ts'
import { OfficeCalls, type Page, pathTo, type WriteOptions, walkPages } from './envelope.ts'
import type {
  ActivityRequest,
  CapturedLetters,
  CaptureRequest,
  CountsRequest,
  ExpireOlderRequest,
  LetterActivity,
  LetterCounts,
  LetterDetail,
  LetterFilter,
  LetterItem,
  LetterKey,
  LetterListRequest,
  LetterStatus,
  LetterTotal,
  OfficeOverview,
  RetryLetterRequest,
  RetryPreview,
  RetryReceipt,
  SignatureDetail,
  SignatureGroup,
  SignatureListRequest,
} from './letter-types.ts'
import { doneBy, RUNS, type RunItem } from './runs.ts'
import { timeToWire } from './times.ts'
import type { CallOptions } from './transport.ts'

const LETTERS = '/api/dlq'
const SIGNATURES = '/api/signatures'

/** Older servers answer only at the end, and a million letters take minutes. */
const EXPIRE_TIMEOUT_MS = 30 * 60_000

/**
 * @example
 * const letters = new LetterClient({ url: 'http://127.0.0.1:1853' })
 * for await (const letter of letters.walk({ engine: 'hmac', status: 'Pending' })) await letters.retry(letter)
 */
export class LetterClient extends OfficeCalls {
  /** One page of the letters that match, the newest failure first. */
  list(request: LetterListRequest = {}, options?: CallOptions): Promise<Page<LetterItem>> {
    return this.fetchPage(LETTERS, { ...request }, options)
  }

  /** All letters that match, the newest failure first. Those that match all the while come exactly once. */
  walk(filter: LetterFilter & { limit?: number } = {}, options?: CallOptions): AsyncGenerator<LetterItem> {
    return walkPages(filter.limit, (page) => this.list({ ...filter, ...page }, options))
  }

  /** A letter with its payload, every failure, and its history. */
  get(letter: LetterKey, options?: CallOptions): Promise<LetterDetail> {
    return this.fetch(pathOf(letter), {}, options)
  }

  /**
   * Files a failure. For a known `sourceId` a repetition gives the letter as it is, and a new failure reopens it. So it
   * is repeated when its connection fails, and sends no idempotency key unless one is given.
   */
  async capture(request: CaptureRequest, options?: WriteOptions): Promise<LetterItem> {
    return this.#report(LETTERS, reportFields(request), options)
  }

  /**
   * Files up to 1,000 failures in one transaction, at most 20 different ones of a `sourceId`. One that cannot be filed
   * is refused at its place in the results. Repeated like `capture`: those already filed are `known` then.
   */
  async captureMany(requests: readonly CaptureRequest[], options?: WriteOptions): Promise<CapturedLetters> {
    return this.#report(`${LETTERS}:batch`, { letters: requests.map(reportFields) }, options)
  }

  /** Sends a pending letter back; with `dryRun` it gives what would be sent, and changes nothing. */
  retry(
    letter: LetterKey,
    request: RetryLetterRequest & { dryRun: true },
    options?: CallOptions,
  ): Promise<RetryPreview>
  retry(
    letter: LetterKey,
    request?: RetryLetterRequest & { dryRun?: false },
    options?: WriteOptions,
  ): Promise<RetryReceipt>
  async retry(
    letter: LetterKey,
    { payload, notes, dryRun = false }: RetryLetterRequest & { dryRun?: boolean } = {},
    options?: WriteOptions,
  ): Promise<RetryReceipt | RetryPreview> {
    const path = `${pathOf(letter)}/retry`
    const body = { ...(payload !== undefined && payloadFields('payload', payload)), notes }
    if (!dryRun) return this.post(path, body, options)
    return this.postAgain<RetryPreview>(`${path}?dryRun=true`, body, options)
  }

  /** Ends a pending letter without sending it back. */
  discard(letter: LetterKey, notes?: string, options?: WriteOptions): Promise<LetterItem> {
    return this.#move(letter, 'Resolved', notes, options)
  }

  /** Gives a pending letter up. */
  expire(letter: LetterKey, notes?: string, options?: WriteOptions): Promise<LetterItem> {
    return this.#move(letter, 'Expired', notes, options)
  }

  /** Makes a resolved or expired letter pending again. */
  restore(letter: LetterKey, notes?: string, options?: WriteOptions): Promise<LetterItem> {
    return this.#move(letter, 'Pending', notes, options)
  }

  /**
   * Gives up all pending letters that failed last more than so many days ago; gives how many. A run of the server: when
   * it is paused or cancelled, this fails with code `run_broken_off` and says how far it came.
   */
  async expireOlder(request: ExpireOlderRequest, options?: WriteOptions): Promise<number> {
    const path = `${LETTERS}/expire`
    const answer = await this.post<{ expired: number } | RunItem>(path, request, options, EXPIRE_TIMEOUT_MS)
    if ('expired' in answer) return answer.expired
    return doneBy(answer, options, (run) => this.fetch(pathTo(RUNS, run), {}, options))
  }

  /** How many letters there are, exactly: by source, engine, queue, status and signature, or by some of these. */
  counts({ by, ...filter }: CountsRequest = {}, options?: CallOptions): Promise<LetterCounts> {
    return this.fetch('/api/counts', { ...filter, by: by?.join(',') }, options)
  }

  /** How many letters match: exactly for source, engine, queue, status, signature and unconfirmed ones, else up to 10,000. */
  total({ ...filter }: LetterFilter = {}, options?: CallOptions): Promise<LetterTotal> {
    return this.fetch(`${LETTERS}/total`, filter, options)
  }

  /** How many letters arrived, were sent back, confirmed, given up, over time. */
  activity({ ...request }: ActivityRequest = {}, options?: CallOptions): Promise<LetterActivity> {
    return this.fetch('/api/activity', request, options)
  }

  /** The office at a glance: what is open and since when, what arrives, what became of retries, how the sources are. */
  overview(options?: CallOptions): Promise<OfficeOverview> {
    return this.fetch('/api/overview', {}, options)
  }

  /** One page of errors, those with the most pending letters first. */
  signatures(request: SignatureListRequest = {}, options?: CallOptions): Promise<Page<SignatureGroup>> {
    return this.fetchPage(SIGNATURES, { ...request }, options)
  }

  /** The group of one signature, and what became of its retries. */
  signature(signature: string, options?: CallOptions): Promise<SignatureDetail> {
    return this.fetch(pathTo(SIGNATURES, signature), {}, options)
  }

  /** Source ids make each one letter however often it is sent. A key would cost the office half as much again. */
  async #report<Data>(path: string, body: object, options: WriteOptions = {}): Promise<Data> {
    if (options.idempotencyKey !== undefined) return this.post(path, body, options)
    return this.postAgain(path, body, options)
  }

  #move(
    letter: LetterKey,
    status: LetterStatus,
    resolutionNotes: string | undefined,
    options: WriteOptions | undefined,
  ): Promise<LetterItem> {
    return this.patch(pathOf(letter), { status, resolutionNotes }, options)
  }
}

const reportFields = ({ originalMessage, firstFailureAtUtc, lastFailureAtUtc, ...rest }: CaptureRequest) => ({
  ...rest,
  ...payloadFields('originalMessage', originalMessage),
  firstFailureAtUtc: firstFailureAtUtc && timeToWire(firstFailureAtUtc),
  lastFailureAtUtc: lastFailureAtUtc && timeToWire(lastFailureAtUtc),
})

const pathOf = ({ engine, rowKey }: LetterKey): string => pathTo(LETTERS, engine, rowKey)
