/** Redrives as the server tells them, under the names of the client library. */
import type {
  RedriveDetail as PlainDetail,
  RedriveDestination,
  RedriveItem,
  RedriveSample,
} from '../../../src/client/redrives.ts'
import type { LetterFilter } from './types.ts'

export type {
  RedriveAction,
  RedriveCanary,
  RedriveCounts,
  RedriveDestination,
  RedriveLetter,
  RedriveNumbers,
  RedriveOrder,
  RedriveOutcome,
  RedriveRepair,
  RedriveSample,
  RedriveState,
  RedriveStopRule,
  RepairHeader,
} from '../../../src/client/redrives.ts'

import type {
  RedriveAction,
  RedriveOrder,
  RedriveOutcome,
  RepairHeader,
} from '../../../src/client/redrives.ts'

/** A redrive as lists have it. */
export interface Redrive extends Omit<RedriveItem, 'filter'> {
  /** null when its letters were named one by one. */
  readonly filter: Readonly<Record<string, string | number>> | null
}

/** A redrive with everything on file about it. */
export interface RedriveDetail extends Redrive {
  readonly destinations: readonly RedriveDestination[]
  readonly exceptions: PlainDetail['exceptions']
  /** Empty once it was started. */
  readonly sample: readonly RedriveSample[]
}

/** What an event tells of a redrive that is under way. */
export type ToldRedrive = Pick<
  Redrive,
  'id' | 'state' | 'sentence' | 'action' | 'counts' | 'rateNow' | 'secondsLeft' | 'note' | 'resumed'
>

export const ACTIVE_STATES = ['canary', 'running', 'paused'] as const
export const PAST_STATES = ['done', 'stopped', 'cancelled'] as const

export const ORDERS: readonly RedriveOrder[] = ['key', 'capture', 'none']

/** What a repair can change beside the payload. */
export const ITEM_HEADERS: readonly RepairHeader[] = ['encoding', 'kind', 'reference']

export const OUTCOMES: readonly RedriveOutcome[] = [
  'remaining',
  'confirmed',
  'returned',
  'unconfirmed',
  'skipped',
  'failed',
  'superseded',
]

/** Whether letters leave the office by it, and something may be heard of them afterwards. */
export const isSending = (action: RedriveAction): boolean => action === 'retry' || action === 'move'

export const isActive = ({ state }: Pick<Redrive, 'state'>): boolean =>
  ACTIVE_STATES.some((active) => active === state)

export const isOver = ({ state }: Pick<Redrive, 'state'>): boolean =>
  PAST_STATES.some((past) => past === state)

/** Its filter as lists are asked with it; null when its letters were named one by one. */
export const filterOf = ({ filter }: Pick<Redrive, 'filter'>): LetterFilter | null =>
  filter === null
    ? null
    : Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, String(value)]))
