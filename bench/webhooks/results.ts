/** All that was measured on one store. */
import type {
  BacklogFigure,
  BulkAct,
  BulkFigure,
  DeliverFigure,
  DlqStatusFigure,
  HangFigure,
} from './task.ts'

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
