/** A typed client of redrives: plan an act on many letters, start it, watch over it. Names are those of the wire. */
import type {
  MemberOutcome,
  PlanBody,
  RedriveDetail,
  RedriveItem,
  RedriveLetter,
  RedriveState,
} from '../redrive/shapes.ts'
import { OfficeCalls, type Page, type PageRequest, pathTo, type WriteOptions, walkPages } from './envelope.ts'
import type { LetterFilter, LetterKey } from './letter-types.ts'
import type { CallOptions } from './transport.ts'

export type { PatchOperation as RepairOperation } from '../core/json/patch.ts'
export type { ItemHeader as RepairHeader } from '../letters/shapes.ts'
export type {
  Canary as RedriveCanary,
  MemberOutcome as RedriveOutcome,
  PlanNumbers as RedriveNumbers,
  RedriveAction,
  RedriveCounts,
  RedriveDestination,
  RedriveDetail,
  RedriveItem,
  RedriveLetter,
  RedriveOrder,
  RedriveRepair,
  RedriveSample,
  RedriveState,
  StopRule as RedriveStopRule,
} from '../redrive/shapes.ts'

/** Give exactly one of `filter`, `signature` and `ids`; beside a filter, a signature narrows it. */
export interface RedrivePlanRequest extends Omit<PlanBody, 'filter'> {
  /** `{}`: all letters in the status that the action needs. */
  readonly filter?: LetterFilter
}

export interface RedriveListRequest extends PageRequest {
  /** Left out: all that were started. */
  readonly states?: readonly RedriveState[]
}

export interface RedriveLettersRequest extends PageRequest {
  readonly outcome?: MemberOutcome
}

const REDRIVES = '/api/redrives'

/** The server answers after half a minute, made or not; a busy store takes longer. */
const PLAN_TIMEOUT_MS = 5 * 60_000

/**
 * @example
 * const redrives = new RedriveClient({ url: 'http://127.0.0.1:1853' })
 * const plan = await redrives.plan({ filter: { engine: 'hmac' }, action: 'retry', rate: 50, canary: 10 })
 * console.log(plan.sentence)
 * await redrives.start(plan.id)
 */
export class RedriveClient extends OfficeCalls {
  /**
   * Finds the letters and what would be done with them; changes nothing. The plan can be started for half an hour. One
   * that takes longer than half a minute comes in state `planning`: read it until it is `planned`.
   */
  plan({ ids, ...request }: RedrivePlanRequest, options?: WriteOptions): Promise<RedriveDetail> {
    const body = { ...request, ids: ids?.map(nameOf) }
    return this.post(REDRIVES, body, options, PLAN_TIMEOUT_MS)
  }

  read(id: string, options?: CallOptions): Promise<RedriveDetail> {
    return this.fetch(pathTo(REDRIVES, id), {}, options)
  }

  /** One page of redrives, the newest first. */
  list({ states, ...page }: RedriveListRequest = {}, options?: CallOptions): Promise<Page<RedriveItem>> {
    return this.fetchPage(REDRIVES, { ...page, state: states?.join(',') }, options)
  }

  /** One page of the letters of a redrive, with what became of each. */
  letters(
    id: string,
    request: RedriveLettersRequest = {},
    options?: CallOptions,
  ): Promise<Page<RedriveLetter>> {
    return this.fetchPage(`${pathTo(REDRIVES, id)}/letters`, { ...request }, options)
  }

  /** All letters of a redrive, or those with one outcome. */
  walkLetters(
    id: string,
    request: Pick<RedriveLettersRequest, 'outcome' | 'limit'> = {},
    options?: CallOptions,
  ): AsyncGenerator<RedriveLetter> {
    return walkPages(request.limit, (page) => this.letters(id, { ...request, ...page }, options))
  }

  /** Carries out a plan. A second start fails with code `redrive_started` and says who was first. */
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

  /** Letters a second to each destination; null: as fast as it goes. */
  setRate(id: string, rate: number | null, options?: WriteOptions): Promise<RedriveDetail> {
    return this.#steer(id, 'rate', { rate }, options)
  }

  #steer(id: string, verb: string, body: object, options: WriteOptions | undefined): Promise<RedriveDetail> {
    return this.post(`${pathTo(REDRIVES, id)}/${verb}`, body, options)
  }
}

/** Letters of a list have more fields. */
const nameOf = (id: string | LetterKey): string | LetterKey =>
  typeof id === 'string' ? id : { engine: id.engine, rowKey: id.rowKey }
