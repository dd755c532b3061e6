/** All measurements of a benchmark, and the figures taken from them: median and spread over the runs. */
import type { SystemName } from './systems/index.ts'
import type { Measurement, WorkloadName } from './task.ts'

export interface Figure {
  readonly median: number
  /** (max − min) / median. */
  readonly spread: number
}

export class Results {
  readonly #measurements = new Map<string, Measurement[]>()
  readonly #failures = new Map<string, string>()

  add(system: SystemName, workload: WorkloadName, measurement: Measurement): void {
    const key = `${system} ${workload}`
    this.#measurements.set(key, [...(this.#measurements.get(key) ?? []), measurement])
  }

  fail(system: SystemName, workload: WorkloadName, reason: string): void {
    this.#failures.set(`${system} ${workload}`, reason)
  }

  get failures(): readonly string[] {
    return [...this.#failures].map(([key, reason]) => `${key}: ${reason}`)
  }

  hasFailed(system: SystemName, workload: WorkloadName): boolean {
    return this.#failures.has(`${system} ${workload}`)
  }

  /** Null when the system did not run the workload or the measurement has no such value. */
  figure(
    system: SystemName,
    workload: WorkloadName,
    value: (measurement: Measurement) => number | null | undefined,
  ): Figure | null {
    const values = (this.#measurements.get(`${system} ${workload}`) ?? [])
      .map(value)
      .filter((number) => number !== null && number !== undefined)
      .sort((a, b) => a - b)
    const median = values[Math.floor((values.length - 1) / 2)]
    if (median === undefined) return null
    return { median, spread: ((values.at(-1) ?? median) - (values[0] ?? median)) / median }
  }

  /** The largest value of all workloads and runs of a system. */
  peak(system: SystemName, value: (measurement: Measurement) => number | null): number | null {
    const values = [...this.#measurements]
      .filter(([key]) => key.startsWith(`${system} `))
      .flatMap(([, measurements]) => measurements.map(value))
      .filter((number) => number !== null)
    return values.length === 0 ? null : Math.max(...values)
  }
}
