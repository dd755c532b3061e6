/**
 * Prometheus' text format for numbers that are kept elsewhere and read at a scrape: counts of the store, meters, rings of durations.
 * prom-client writes only values that it holds itself: a histogram's buckets and a summary's quantiles cannot be set.
 */

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  /** Suffix of the family's name, as buckets of a histogram have. */
  readonly suffix?: string
  readonly labels?: Labels
  readonly value: number
}

/** The lines of a family: its header always, its samples if there are any. */
export function family(
  name: string,
  type: 'gauge' | 'counter' | 'histogram' | 'summary',
  help: string,
  samples: Iterable<Sample>,
): string[] {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
  for (const { suffix = '', labels, value } of samples) {
    lines.push(`${name}${suffix}${labels === undefined ? '' : labelText(labels)} ${value}`)
  }
  return lines
}

/** Cumulative counts by bound, sum and count. */
export function* histogramSamples(
  bounds: readonly number[],
  counts: readonly number[],
  sum: number,
  labels?: Labels,
): Iterable<Sample> {
  for (const [index, bound] of [...bounds, '+Inf'].entries())
    yield { suffix: '_bucket', labels: { ...labels, le: String(bound) }, value: counts[index] ?? 0 }
  const rest = labels === undefined ? {} : { labels }
  yield { suffix: '_sum', ...rest, value: sum }
  yield { suffix: '_count', ...rest, value: counts.at(-1) ?? 0 }
}

const labelText = (labels: Labels): string =>
  `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',')}}`

const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
