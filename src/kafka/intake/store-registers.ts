/**
 * The registers of drawers and series as one transaction sees them. A number that is new is remembered only after its commit; records
 * come by the thousand, and each of them would ask for it again until then.
 */
import { type HistoryStatus, SeriesNumbers } from '../../history/record.ts'
import type { Registers } from '../../letters/death-note.ts'
import { type DrawerLabel, Drawers } from '../../letters/drawers.ts'
import type { OfficeWork } from '../../letters/work.ts'

/** Registers that ask the given ones once for each label. Use them for one transaction. */
export const registersOnce = ({ drawers, series }: Registers): Registers => ({
  drawers: new DrawersOnce(drawers),
  series: new SeriesOnce(series),
})

class DrawersOnce extends Drawers {
  readonly #drawers: Drawers
  readonly #asked = new Map<string, Promise<number>>()

  constructor(drawers: Drawers) {
    super()
    this.#drawers = drawers
  }

  override numberOf(work: OfficeWork, label: DrawerLabel): Promise<number> {
    const key = `${label.signature.fingerprint} ${label.queue}`
    const asked = this.#asked.get(key) ?? this.#drawers.numberOf(work, label)
    this.#asked.set(key, asked)
    return asked
  }
}

class SeriesOnce extends SeriesNumbers {
  readonly #series: SeriesNumbers
  readonly #asked = new Map<string, Promise<number>>()

  constructor(series: SeriesNumbers) {
    super()
    this.#series = series
  }

  override numberOf(
    work: Pick<OfficeWork, 'tx' | 'afterCommit'>,
    engine: string,
    operation: string,
    status: HistoryStatus,
  ): Promise<number> {
    const key = `${engine} ${operation} ${status}`
    const asked = this.#asked.get(key) ?? this.#series.numberOf(work, engine, operation, status)
    this.#asked.set(key, asked)
    return asked
  }
}
