/** A typed client of redrives: plan an act on many letters, look at it, start it and watch over it. As the letter client, with the names of the wire. */
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
import type { Progressing } from './runs.ts'
import { type CallOptions, type ConnectionOptions, type Endpoint, endpointOf } from './transport.ts'

export type RedriveState =
  | 'planning'
  | 'planned'
  | 'canary'
  | 'running'
  | 'paused'
  | 'done'
  | 'stopped'
  | 'cancelled'

/** `move` sends letters to another queue than the one they came from. */
export type RedriveAction = 'retry' | 'move' | 'discard' | 'restore'

/**
 * `key`: letters of one key go out in the order in which they were captured, different keys at once. `capture`: one after the other
 * for each destination. `none`: as it comes.
 */
export type RedriveOrder = 'key' | 'capture' | 'none'

/** An operation of JSON Patch (RFC 6902). */
export type RepairOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly from: string; readonly path: string }

/** What an item of a queue carries beside its payload. */
export type RepairHeader = 'encoding' | 'kind' | 'reference'

/** What is changed in every letter before it is sent; `patch` and `mapping` exclude each other. */
export interface RedriveRepair {
  readonly patch?: readonly RepairOperation[]
  /** JSONata: the payload is its input, and what it gives is the new payload. */
  readonly mapping?: string
  readonly headers?: {
    readonly set?: Readonly<Partial<Record<RepairHeader, string>>>
    readonly remove?: readonly RepairHeader[]
  }
}

/** Letters that go first. */
export interface RedriveCanary {
  readonly letters: number
  /** How many of these must be confirmed before the others follow, of a hundred. */
  readonly confirmPercent: number
  /** How long that is waited for; then the redrive pauses. */
  readonly waitSeconds: number
}

/** Stops a redrive when more than `percent` of the last `of` outcomes were deaths. */
export interface RedriveStopRule {
  readonly percent: number
  readonly of: number
}

/** What is to be planned. Give exactly one of `filter`, `signature` and `ids`; beside a filter, a signature narrows it. */
export interface RedrivePlanRequest {
  /** `{}`: all letters in the status that the action needs. */
  readonly filter?: LetterFilter
  readonly signature?: string
  /** At most 10,000; as `ENGINE/ROWKEY`, or letters of a list. */
  readonly ids?: readonly (string | LetterKey)[]
  readonly action: RedriveAction
  /** Only for `move`, and required there. */
  readonly queue?: string
  readonly repair?: RedriveRepair
  /** Letters a second, to each destination, fractions allowed; null or left out: as fast as it goes. */
  readonly rate?: number | null
  /** A number of letters, or more about them: left out, 10 letters, all of which must be confirmed within ten minutes. */
  readonly canary?: number | Partial<RedriveCanary> | null
  readonly stopRule?: RedriveStopRule | null
  /** Left out: `key`. */
  readonly order?: RedriveOrder
  /** Required to discard. */
  readonly reason?: string
}

/** planned = sent + skipped + failed + remaining; sent = confirmed + returned + unconfirmed. At every moment. */
export interface RedriveCounts {
  readonly planned: number
  /** Sent, discarded or restored: the act was done. */
  readonly sent: number
  /** Left as they are, because they were not what they were when they were planned, or must not go out. */
  readonly skipped: number
  /** It was tried, and refused. */
  readonly failed: number
  readonly remaining: number
  readonly confirmed: number
  /** They died again. */
  readonly returned: number
  readonly unconfirmed: number
}

/** What a plan found. `matched` is the sum of all others. */
export interface RedriveNumbers {
  readonly matched: number
  /** Those that are in the plan. */
  readonly eligible: number
  /** Somebody works on them: sent back and not heard of, leased from their dead queue, or in another redrive. */
  readonly inFlight: number
  /** There is nowhere to send them to. */
  readonly noDestination: number
  /** An earlier letter of their key is pending and not in the plan. */
  readonly orderBlocked: number
  /** Named more than once. */
  readonly duplicate: number
  /** Unknown, not in the status that the action needs, or the repair does not apply. */
  readonly invalid: number
}

/** A redrive as lists show it. */
export interface RedriveItem extends Progressing {
  readonly id: string
  readonly state: RedriveState
  /** How it stands, for people. */
  readonly sentence: string
  readonly action: RedriveAction
  readonly queue: string | null
  /** null: its letters were named one by one, and `ids` says how many. */
  readonly filter: LetterFilter | null
  readonly ids: number | null
  readonly counts: RedriveCounts
  readonly numbers: RedriveNumbers
  readonly rate: number | null
  readonly canary: RedriveCanary | null
  readonly stopRule: RedriveStopRule | null
  readonly order: RedriveOrder
  readonly repair: (RedriveRepair & { readonly version: string }) | null
  readonly reason: string | null
  readonly plannedBy: string
  readonly plannedAtUtc: string
  /** Until then the plan can be started. */
  readonly validUntilUtc: string
  readonly isExpired: boolean
  readonly startedBy: string | null
  readonly startedAtUtc: string | null
  readonly endedAtUtc: string | null
  /** Why it is paused, was stopped or was cancelled. */
  readonly note: string | null
}

/** Letters of a redrive that go to the same place. */
export interface RedriveDestination
  extends Pick<RedriveCounts, 'planned' | 'sent' | 'skipped' | 'failed' | 'remaining'> {
  readonly source: string
  /** A queue, an outbox, a consumer or a topic; '' when there is none. */
  readonly name: string
}

/** A letter of a plan as it would be sent; its payload as far as 64 KiB. `bytesOf` makes bytes of its texts. */
export interface RedriveSample extends LetterKey {
  readonly instanceId: string
  readonly errorMessage: string
  /** null, as the five after it: it does not leave the office, or cannot. */
  readonly queue: string | null
  readonly encoding: string | null
  readonly kind: string | null
  readonly reference: string | null
  readonly payload: string | null
  readonly payloadEncoding: TextEncoding | null
  readonly payloadTruncated: boolean
  /** What it would be without the repair; null when there is none. */
  readonly before: {
    readonly payload: string
    readonly payloadEncoding: TextEncoding
    readonly payloadTruncated: boolean
  } | null
  /** Why it would be refused; null when it would not. */
  readonly refusal: string | null
}

/** A redrive with everything on file about it. */
export interface RedriveDetail extends RedriveItem {
  readonly destinations: readonly RedriveDestination[]
  /** How many letters were not sent, by reason. */
  readonly exceptions: readonly {
    readonly outcome: 'skipped' | 'failed'
    readonly reason: string
    readonly letters: number
  }[]
  /** The first letters as they would be sent; empty once it was started. */
  readonly sample: readonly RedriveSample[]
}

export interface RedriveListRequest extends PageRequest {
  /** Left out: all that were started. */
  readonly states?: readonly RedriveState[]
}

/** What became of a letter of a redrive. `superseded`: it was sent, and something else was done to it since. */
export type RedriveOutcome =
  | 'remaining'
  | 'skipped'
  | 'failed'
  | 'confirmed'
  | 'returned'
  | 'unconfirmed'
  | 'superseded'

export interface RedriveLettersRequest extends PageRequest {
  readonly outcome?: RedriveOutcome
}

/** A letter of a redrive. */
export interface RedriveLetter {
  /** null, as `rowKey`: the letter was removed when its time was over. */
  readonly engine: string | null
  readonly rowKey: string | null
  readonly destination: string
  readonly outcome: RedriveOutcome
  /** Why it was not sent. */
  readonly reason: string | null
  readonly detail: string | null
}

const REDRIVES = '/api/redrives'

/** A plan is answered after half a minute at the latest, made or not; where the store is busy, later. */
const PLAN_TIMEOUT_MS = 5 * 60_000

/**
 * @example
 * const redrives = new RedriveClient({ url: 'http://127.0.0.1:1853' })
 * const plan = await redrives.plan({ filter: { engine: 'hmac' }, action: 'retry', rate: 50, canary: 10 })
 * console.log(plan.sentence)
 * await redrives.start(plan.id)
 */
export class RedriveClient {
  readonly #endpoint: Endpoint

  constructor(options: ConnectionOptions) {
    this.#endpoint = endpointOf(options)
  }

  /**
   * Finds the letters and tells what would be done with them; changes nothing. The plan can be started for half an hour. One that
   * takes longer than half a minute is given in state `planning`: read it until it is `planned`.
   */
  plan({ ids, ...request }: RedrivePlanRequest, options?: WriteOptions): Promise<RedriveDetail> {
    const body = { ...request, ids: ids?.map(nameOf) }
    return write(this.#endpoint, 'POST', REDRIVES, body, options, PLAN_TIMEOUT_MS)
  }

  /** How a redrive stands. */
  read(id: string, options?: CallOptions): Promise<RedriveDetail> {
    return read(this.#endpoint, pathTo(REDRIVES, id), {}, options)
  }

  /** One page of redrives, the newest first. */
  list({ states, ...page }: RedriveListRequest = {}, options?: CallOptions): Promise<Page<RedriveItem>> {
    return readPage(this.#endpoint, REDRIVES, { ...page, state: states?.join(',') }, options)
  }

  /** One page of the letters of a redrive, with what became of each. */
  letters(
    id: string,
    request: RedriveLettersRequest = {},
    options?: CallOptions,
  ): Promise<Page<RedriveLetter>> {
    return readPage(this.#endpoint, `${pathTo(REDRIVES, id)}/letters`, { ...request }, options)
  }

  /** All letters of a redrive, or those with one outcome. */
  walkLetters(
    id: string,
    request: Pick<RedriveLettersRequest, 'outcome' | 'limit'> = {},
    options?: CallOptions,
  ): AsyncGenerator<RedriveLetter> {
    return walkPages(request.limit, (page) => this.letters(id, { ...request, ...page }, options))
  }

  /** Begins to carry out a plan. Whoever comes second is told who was first (code `redrive_started`). */
  start(id: string, options?: WriteOptions): Promise<RedriveDetail> {
    return this.#steer(id, 'start', {}, options)
  }

  /** Halts it; no letter leaves after the answer. */
  pause(id: string, reason?: string, options?: WriteOptions): Promise<RedriveDetail> {
    return this.#steer(id, 'pause', { reason }, options)
  }

  /** Lets it go on where it was. */
  resume(id: string, options?: WriteOptions): Promise<RedriveDetail> {
    return this.#steer(id, 'resume', {}, options)
  }

  /** Ends it, or gives up a plan; letters that were not sent stay as they are. */
  cancel(id: string, reason?: string, options?: WriteOptions): Promise<RedriveDetail> {
    return this.#steer(id, 'cancel', { reason }, options)
  }

  /** Changes how many letters a second may leave, to each destination; null: as fast as it goes. */
  setRate(id: string, rate: number | null, options?: WriteOptions): Promise<RedriveDetail> {
    return this.#steer(id, 'rate', { rate }, options)
  }

  #steer(id: string, verb: string, body: object, options: WriteOptions | undefined): Promise<RedriveDetail> {
    return write(this.#endpoint, 'POST', `${pathTo(REDRIVES, id)}/${verb}`, body, options)
  }
}

/** Letters of a list have more than their name. */
const nameOf = (id: string | LetterKey): string | LetterKey =>
  typeof id === 'string' ? id : { engine: id.engine, rowKey: id.rowKey }
