/**
 * Quantiles over the latest observations, per value of one label. The metrics library's own summary keeps a
 * digest tree per time bucket, which costs microseconds for every request; a ring of the latest values costs
 * almost nothing to fill and is sorted only when somebody looks.
 */

/** The quantiles are over this many latest observations at most. */
const WINDOW = 1_024

interface Series {
  readonly ring: Float64Array
  count: number
  sum: number
}

export interface SummaryOptions {
  readonly name: string
  readonly help: string
  readonly label: string
  readonly quantiles: readonly number[]
}

export class SlidingSummary {
  readonly #options: SummaryOptions
  readonly #series = new Map<string, Series>()

  constructor(options: SummaryOptions) {
    this.#options = options
  }

  /** `of` is the value of the label; it must come from a fixed set and is printed as it is. */
  observe(of: string, value: number): void {
    let series = this.#series.get(of)
    if (series === undefined) {
      series = { ring: new Float64Array(WINDOW), count: 0, sum: 0 }
      this.#series.set(of, series)
    }
    series.ring[series.count % WINDOW] = value
    series.count += 1
    series.sum += value
  }

  /** In Prometheus' text format. */
  text(): string {
    const { name, help, label, quantiles } = this.#options
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} summary`]
    for (const [of, { ring, count, sum }] of this.#series) {
      const sorted = ring.slice(0, Math.min(count, WINDOW)).sort()
      for (const quantile of quantiles) {
        const value = sorted[Math.ceil(quantile * sorted.length) - 1] ?? 0
        lines.push(`${name}{${label}="${of}",quantile="${quantile}"} ${value}`)
      }
      lines.push(`${name}_sum{${label}="${of}"} ${sum}`, `${name}_count{${label}="${of}"} ${count}`)
    }
    return `${lines.join('\n')}\n`
  }
}
