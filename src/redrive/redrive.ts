/**
 * The words of redrives: one act on many letters, planned first, then carried out under control.
 *
 *   planning ──► planned ──► canary ──► running ──► done
 *       │            │          │  ▲      │  ▲  └─► stopped     its stop rule, or its canary, said no; or it could not be planned
 *       │            │          ▼  │      ▼  │
 *       │            │          paused ◄──────           by an operator, or because it could not go on
 *       └────────────┴──────────┴─────────┴────────► cancelled
 *
 * A plan is a frozen set: these letters, in these versions. They are dealt into *lanes*, one for every destination and several for
 * a large one; all letters of a key lie in the same lane, in the order in which they were captured. A lane is walked from its
 * beginning to its end, so how far it is says what became of each of its letters: behind, it was sent, unless it is among the
 * exceptions; ahead, it remains.
 */

import type { LetterId, RedriveRef } from '../letters/letter.ts'
import type { LetterFilter } from '../letters/lists/filter.ts'
import type { LetterKey } from '../letters/shapes.ts'
import type { Recipe } from './repair/recipe.ts'
import type { StoredRedrive } from './rows/rows.ts'
import type {
  Canary,
  ExceptionReason,
  MemberOutcome,
  PlanNumbers,
  RedriveAction,
  RedriveCounts,
  RedriveDestination,
  RedriveOrder,
  RedriveState,
  StopRule,
  RedriveDetail as ToldDetail,
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
}

declare const redriveNumberBrand: unique symbol

/** A redrive's number in the store; users know it by its id. */
export type RedriveNumber = number & { readonly [redriveNumberBrand]: true }

/** Marks a number from the store as a redrive's. */
export const redriveNumber = (value: bigint | number | string): RedriveNumber =>
  Number(value) as RedriveNumber

/** The kinds of the runs by which redrives are planned and carried out. */
export const PLAN_RUN = 'redrive-plan'
export const REDRIVE_RUN = 'redrive'

/** Those that a server works on. */
export type WorkingState = 'canary' | 'running'

export const isWorking = (state: RedriveState): state is WorkingState =>
  state === 'canary' || state === 'running'

export const isOver = (state: RedriveState): boolean =>
  state === 'done' || state === 'stopped' || state === 'cancelled'

/** Whether letters leave the office by it, and something may be heard of them afterwards. */
export const isSending = (action: RedriveAction): action is 'retry' | 'move' =>
  action === 'retry' || action === 'move'

/** How a redrive is to go. */
export interface Terms {
  /** Letters a second, to each destination; null: as fast as it goes. */
  readonly rate: number | null
  readonly canary: Canary | null
  readonly stopRule: StopRule | null
  readonly order: RedriveOrder
}

/** Which letters. */
export type Selection =
  | { readonly by: 'filter'; readonly filter: LetterFilter }
  | { readonly by: 'ids'; readonly ids: readonly LetterKey[] }

/** What an operator asks for. */
export interface PlanRequest {
  readonly selection: Selection
  readonly action: RedriveAction
  /** Where `move` sends them; null for the other actions. */
  readonly queue: string | null
  readonly recipe: Recipe | null
  readonly terms: Terms
  /** Required to discard. */
  readonly reason: string | null
  readonly actor: string
}

/** A letter of a plan that was not sent. */
export interface Exception {
  readonly letter: LetterId
  readonly outcome: 'skipped' | 'failed'
  readonly reason: ExceptionReason
  /** What exactly; null when the reason says it all. */
  readonly detail: string | null
}

/** A redrive as it stands in its row, without its counts. */
export type Redrive = Omit<StoredRedrive, 'owner' | 'canarySentAt' | 'recent' | 'rateMeasured'>

/** How letters and history name a redrive. */
export const refOf = ({ number, id, recipe }: Redrive): RedriveRef => ({
  number,
  id,
  recipe: recipe?.version ?? null,
})

/** Letters that go to the same place. */
export type Destination = Omit<RedriveDestination, 'remaining'>

/** A redrive and how far it is. */
export interface RedriveStanding extends Redrive {
  readonly counts: RedriveCounts
  /** Letters a second, over the last seconds; null when it is not under way on any server or too young. */
  readonly rateNow: number | null
  /** At this rate; null when that is not known. */
  readonly secondsLeft: number | null
}

/** With everything that is on file about it. */
export interface RedriveDetail extends RedriveStanding {
  readonly destinations: readonly Destination[]
  readonly exceptions: ToldDetail['exceptions']
  /** The first letters as they would be sent; empty once it was started. */
  readonly sample: readonly SampleLetter[]
}

/** A letter of a plan as it would be sent. */
export interface SampleLetter {
  readonly key: LetterKey
  readonly instanceId: string
  readonly errorMessage: string
  /** null: it does not leave the office, or cannot (see `refusal`). */
  readonly outgoing: {
    readonly queue: string
    readonly encoding: string
    readonly kind: string
    readonly reference: string
    readonly payload: Uint8Array
  } | null
  /** What it would be without the repair; null when there is none. */
  readonly before: { readonly payload: Uint8Array } | null
  /** Why it would be refused; null when it would not. */
  readonly refusal: string | null
}

export interface Member {
  /** null: retention has removed the letter. */
  readonly key: LetterKey | null
  readonly letter: LetterId
  readonly destination: string
  readonly outcome: MemberOutcome
  readonly reason: ExceptionReason | null
  readonly detail: string | null
}

/** How long a plan can be started. */
export const PLAN_VALID_US = 30n * 60_000_000n
