/** Tables in markdown, the lines of most of them, and how numbers are written there. */

/** A table in markdown; the first column to the left, the others to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

/** What stands below the tables: what was measured on, how, and what failed. */
export const endOf = (
  facts: readonly (readonly [string, string])[],
  notes: readonly string[],
  failures: readonly string[] = [],
): string[] => [
  table(['machine', ''], facts),
  ...(notes.length > 0 ? [listed(notes)] : []),
  ...failuresOf(failures),
]

export const failuresOf = (failures: readonly string[]): string[] =>
  failures.length > 0 ? [`**Failed:**\n${listed(failures)}`] : []

const listed = (texts: readonly string[]): string => texts.map((text) => `- ${text}`).join('\n')

/** A figure beside what it is measured against, with its goal. */
export type Line = readonly [what: string, figure: string, beside: string, ratio: string, goal: string]

export const lineTable = (title: string, lines: readonly Line[]): string =>
  table([title, 'figure', 'beside', 'ratio', 'goal'], lines)

export const judged = (goal: string, isMet: boolean): string => `${goal} ${isMet ? 'met' : '**missed**'}`
export const count = (number: number): string => Math.round(number).toLocaleString('en')
export const perSecond = (rate: number): string => `${count(rate)}/s`
export const millis = (ms: number): string => `${ms.toFixed(ms < 10 ? 2 : 1)} ms`
export const percent = (share: number): string => `${(100 * share).toFixed(0)}%`
export const times = (ratio: number): string => `${ratio.toFixed(ratio < 10 ? 2 : 0)}x`
export const megabytes = (mb: number): string => `${mb.toFixed(0)} MB`
