/**
 * The words of redrives: one act on many letters, planned first, then carried out under control.
 *
 *   planning ──► planned ──► canary ──► running ──► done
 *       │            │          │  ▲      │  ▲  └─► stopped     by its stop rule or canary, or it could not be planned
 *       │            │          ▼  │      ▼  │
 *       │            │          paused ◄──────           by an operator, or because it could not go on
 *       └────────────┴──────────┴─────────┴────────► cancelled
 *
 * A plan is a frozen set of letters in their versions, dealt into *lanes*: one per destination, several for a large one. All letters of a
 * key are in one lane, in capture order. A lane is walked from start to end, so its position says what became of each letter: behind it,
 * sent unless among the exceptions; ahead of it, remaining.
 */
import type { LetterId, Outgoing, RedriveRef } from '../letters/letter.ts'
import type { LetterFilter } from '../letters/lists/filter.ts'
import type { LetterKey } from '../letters/shapes.ts'
import type { Recipe } from './repair/recipe.ts'
import type { StoredRedrive } from './rows/rows.ts'
import type {
  ExceptionReason,
  RedriveAction,
  RedriveCounts,
  RedriveDestination,
  RedriveItem,
  RedriveLetter,
  RedriveState,
  RedriveDetail as ShownDetail,
} from './shapes.ts'

export type {
  Canary,
  ExceptionReason,
  MemberOutcome,
  PlanNumbers,
  RedriveAction,
  RedriveCounts,
  RedriveOrder,
  RedriveState,
  StopRule,
} from './shapes.ts'

declare const redriveNumberBrand: unique symbol

/** Number in the store; users know the id. */
export type RedriveNumber = number & { readonly [redriveNumberBrand]: true }

export const redriveNumber = (value: bigint | number | string): RedriveNumber =>
  Number(value) as RedriveNumber

/** Kinds of runs that plan and carry out redrives. */
export const PLAN_RUN = 'redrive-plan'
export const REDRIVE_RUN = 'redrive'

/** States in which a server drives. */
export type WorkingState = 'canary' | 'running'

export const isWorking = (state: RedriveState): state is WorkingState =>
  state === 'canary' || state === 'running'

export const isOver = (state: RedriveState): boolean =>
  state === 'done' || state === 'stopped' || state === 'cancelled'

/** Whether letters leave the office, so that something may be heard of them. */
export const isSending = (action: RedriveAction): action is 'retry' | 'move' =>
  action === 'retry' || action === 'move'

/** How a redrive is to go; `rate` is in letters a second, to each destination. */
export type Terms = Pick<RedriveItem, 'rate' | 'canary' | 'stopRule' | 'order'>

export type Selection =
  | { readonly by: 'filter'; readonly filter: LetterFilter }
  | { readonly by: 'ids'; readonly ids: readonly LetterKey[] }

export interface PlanRequest {
  readonly selection: Selection
  readonly action: RedriveAction
  /** Destination of `move`; null for other actions. */
  readonly queue: string | null
  readonly recipe: Recipe | null
  readonly terms: Terms
  /** Required to discard. */
  readonly reason: string | null
  readonly actor: string
}

export interface Exception {
  readonly letter: LetterId
  readonly outcome: 'skipped' | 'failed'
  readonly reason: ExceptionReason
  /** null when the reason says it all. */
  readonly detail: string | null
}

/** A redrive without its counts. */
export type Redrive = Omit<StoredRedrive, 'owner' | 'canarySentAt' | 'recent' | 'rateMeasured'>

/** A redrive as letters and history name it. */
export const refOf = ({ number, id, recipe }: Redrive): RedriveRef => ({
  number,
  id,
  recipe: recipe?.version ?? null,
})

export type Destination = Omit<RedriveDestination, 'remaining'>

/** A redrive with its progress. */
export interface RedriveStanding extends Redrive {
  readonly counts: RedriveCounts
  /** Letters a second over the last seconds; null when no server drives it or it is too young. */
  readonly rateNow: number | null
  /** At that rate. */
  readonly secondsLeft: number | null
}

export interface RedriveDetail extends RedriveStanding {
  readonly destinations: readonly Destination[]
  readonly exceptions: ShownDetail['exceptions']
  /** The first letters as they would be sent; empty once started. */
  readonly sample: readonly SampleLetter[]
}

export interface SampleLetter {
  readonly key: LetterKey
  readonly instanceId: string
  readonly errorMessage: string
  /** null: it does not leave the office, or cannot (see `refusal`). */
  readonly outgoing: Pick<Outgoing, 'queue' | 'encoding' | 'kind' | 'reference' | 'payload'> | null
  /** Without the repair; null when there is none. */
  readonly before: { readonly payload: Uint8Array } | null
  /** Why it would be refused. */
  readonly refusal: string | null
}

export interface Member extends Pick<RedriveLetter, 'destination' | 'outcome' | 'detail'> {
  /** null: retention has removed the letter. */
  readonly key: LetterKey | null
  readonly letter: LetterId
  readonly reason: ExceptionReason | null
}

export const PLAN_VALID_US = 30n * 60_000_000n
