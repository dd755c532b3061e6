/** All that was measured on one store. */
import { median, rising } from '../letters/measure.ts'
import type {
  BacklogFigure,
  BulkAct,
  BulkFigure,
  DeliverFigure,
  DlqStatusFigure,
  HangFigure,
} from './task.ts'

/** The median of some runs, and half of their range as a share of it. */
export interface Middle {
  readonly median: number
  readonly spread: number
}

export class StoreResults {
  /** By the number of consumers, and by how many hang; one figure for each run. */
  readonly deliver = new Map<number, DeliverFigure[]>()
  readonly hang = new Map<number, HangFigure[]>()
  backlog: BacklogFigure | null = null
  /** By the number of dead jobs, from few to many. */
  readonly dlqStatus = new Map<number, DlqStatusFigure>()
  readonly bulk = new Map<BulkAct, BulkFigure>()
}

/** Adds one more run. */
export function addRun<T>(runs: Map<number, T[]>, key: number, figure: T): void {
  runs.set(key, [...(runs.get(key) ?? []), figure])
}

/** Null when there was no run. */
export function middleOf<T>(runs: readonly T[] | undefined, value: (figure: T) => number): Middle | null {
  const values = rising((runs ?? []).map(value))
  const [least] = values
  const most = values.at(-1)
  if (least === undefined || most === undefined) return null
  const middle = median(values)
  return { median: middle, spread: middle === 0 ? 0 : (most - least) / 2 / middle }
}
