/** All that was measured on one store. */
import { middleOf, type Times } from '../figures.ts'
import type { Measurement } from '../task.ts'
import { nameOf } from './plan.ts'
import type { BacklogFigure, DispatchRun, ReadFigures, WriterFigure } from './task.ts'

export class StoreResults {
  writer: readonly WriterFigure[] = []
  latency: Times | null = null
  /** With few messages waiting, and with many. */
  backlog: { readonly small: BacklogFigure; readonly large: BacklogFigure } | null = null
  /** With few processed rows, and with many. */
  reads: { readonly few: ReadFigures; readonly many: ReadFigures } | null = null
  readonly #dispatches = new Map<string, Measurement[]>()

  addDispatch(run: DispatchRun, measurement: Measurement): void {
    const name = nameOf(run)
    this.#dispatches.set(name, [...(this.#dispatches.get(name) ?? []), measurement])
  }

  /** The names of the runs, in their order. */
  get dispatches(): readonly string[] {
    return [...this.#dispatches.keys()]
  }

  /** The median of a figure over the runs, and half of their range as a share of it. Null when there was none. */
  figure(name: string, value: (measurement: Measurement) => number | null) {
    const values = (this.#dispatches.get(name) ?? []).map(value).filter((number) => number !== null)
    return middleOf(values, (number) => number)
  }
}
