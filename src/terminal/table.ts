/**
 * Rows in columns, and names with their values. Each column is as wide as its first rows need, one takes what is left.
 * Later rows keep the layout, so that a long list can be printed page by page.
 */
import { PLAIN, printable, type Style, stateIn, statusIn } from './terminal.ts'
import { grouped } from './words.ts'

export interface Column<Row> {
  readonly heading: string
  readonly text: (row: Row) => string
  /** Longer texts are cut. Left out: as long as it needs. */
  readonly most?: number
  /** Width it may be cut to for the flexible column. Left out: never cut. */
  readonly least?: number
  /** Cut only where the line would be too long. */
  readonly precious?: boolean
  readonly right?: boolean
  readonly flexible?: boolean
  readonly paint?: (row: Row, text: string, style: Style) => string
}

const GAP = '  '
const LEAST_FLEXIBLE = 16
/** Below this width the flexible column takes from those that can be cut. */
const COMFORTABLE = 40
const MOST_UNBOUNDED = 120

export interface Layout<Row> {
  readonly headings: string
  line(row: Row): string
}

/** `width` undefined: lines may be of any length. */
export function layOut<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number | undefined,
  style: Style = PLAIN,
): Layout<Row> {
  const natural = columns.map(({ heading, text, most = Number.POSITIVE_INFINITY }) => {
    const longest = rows.reduce((widest, row) => Math.max(widest, widthOf(printable(text(row)))), 0)
    return Math.max(widthOf(heading), Math.min(most, longest))
  })
  const widths = width === undefined ? unbounded(columns, natural) : bounded(columns, natural, width)
  const place = (text: string, column: number): string => {
    const columnWidth = widths[column] ?? 0
    const fitting = cut(text, columnWidth)
    if (columns[column]?.right) return padStart(fitting, columnWidth)
    return column === columns.length - 1 ? fitting : padEnd(fitting, columnWidth)
  }
  return {
    headings: style.dim(columns.map(({ heading }, column) => place(heading, column)).join(GAP)),
    line: (row) =>
      columns
        .map(({ text, paint }, column) => {
          const placed = place(printable(text(row)), column)
          return paint === undefined ? placed : paint(row, placed, style)
        })
        .join(GAP)
        .trimEnd(),
  }
}

const unbounded = <Row>(columns: readonly Column<Row>[], natural: readonly number[]): readonly number[] =>
  natural.map((wanted, column) => (columns[column]?.flexible ? Math.min(wanted, MOST_UNBOUNDED) : wanted))

function bounded<Row>(
  columns: readonly Column<Row>[],
  natural: readonly number[],
  width: number,
): readonly number[] {
  const widths = [...natural]
  const free = width - GAP.length * (columns.length - 1)
  const left = () =>
    free - widths.reduce((sum, each, column) => (columns[column]?.flexible ? sum : sum + each), 0)
  const wanted = Math.max(0, ...natural.filter((_, column) => columns[column]?.flexible))
  for (const [column, { heading, least, precious }] of columns.entries()) {
    const missing = Math.min(precious ? LEAST_FLEXIBLE : COMFORTABLE, wanted) - left()
    if (least === undefined || missing <= 0) continue
    const has = widths[column] ?? 0
    widths[column] = Math.min(has, Math.max(least, widthOf(heading), has - missing))
  }
  return widths.map((each, column) =>
    columns[column]?.flexible ? Math.min(each, Math.max(LEAST_FLEXIBLE, left())) : each,
  )
}

export function columnsText<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number | undefined,
  style: Style = PLAIN,
): string {
  const { headings, line } = layOut(columns, rows, width, style)
  return [headings.trimEnd(), ...rows.map(line)].join('\n')
}

/** Plain cells; columns of numbers are right-aligned. */
export const table = (headings: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  columnsText(
    headings.map((heading, column) => ({
      heading,
      text: (row: readonly (string | number)[]) => String(row[column] ?? ''),
      right: rows.length > 0 && rows.every((row) => typeof row[column] === 'number'),
    })),
    rows,
    undefined,
  )

export const tableOf = <Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row) => string | number>>,
): string =>
  table(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((cell) => cell(row))),
  )

export const counted = <Row>(heading: string, of: (row: Row) => number): Column<Row> => ({
  heading,
  text: (row) => grouped(of(row)),
  right: true,
})

export const statusColumn: Column<{ readonly status: string }> = {
  heading: 'STATUS',
  text: ({ status }) => status,
  paint: ({ status }, text, style) => statusIn(style, status, text),
}

export const stateColumn = <Row extends { readonly state: string }>(
  text: (row: Row) => string = ({ state }) => state,
): Column<Row> => ({
  heading: 'STATE',
  text,
  paint: ({ state }, shown, style) => stateIn(style, state, shown),
})

export type Field = readonly [name: string, value: string | null]

/** A line each, names padded to `width`; empty values are left out. */
export const fieldLines = (fields: readonly Field[], width: number): readonly string[] =>
  fields.flatMap(([name, value]) =>
    value === null || value === '' ? [] : [`${name.padEnd(width)}${printable(value)}`],
  )

export const indented = (lines: readonly string[]): readonly string[] => lines.map((line) => `  ${line}`)

/** A blank line, the title, indented lines; nothing without lines. */
export const section = (title: string, lines: readonly string[], style: Style): readonly string[] =>
  lines.length === 0 ? [] : ['', style.bold(title), ...indented(lines)]

const SEGMENTER = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** East Asian scripts and symbols that terminals draw two columns wide. Near enough to line up: `string-width` would replace ten lines by four packages. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u
const ASCII = /^[\x20-\x7e]*$/

/** Columns of a printable text. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const { segment } of SEGMENTER.segment(text)) width += graphemeWidth(segment)
  return width
}

const graphemeWidth = (grapheme: string): number => {
  if (/^[\p{Mn}\p{Me}\p{Cf}]+$/u.test(grapheme)) return 0
  return WIDE.test(grapheme) || grapheme.includes('\ufe0f') ? 2 : 1
}

/** Cut with an ellipsis to that many columns. */
export function cut(text: string, columns: number): string {
  if (ASCII.test(text)) return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`
  // Only what could fit is measured.
  const near = text.slice(0, columns * 16)
  if (near.length === text.length && widthOf(text) <= columns) return text
  let kept = ''
  let width = 0
  for (const { segment } of SEGMENTER.segment(near)) {
    width += graphemeWidth(segment)
    if (width > columns - 1) break
    kept += segment
  }
  return `${kept}…`
}

export const padEnd = (text: string, columns: number): string =>
  text + ' '.repeat(Math.max(0, columns - widthOf(text)))

export const padStart = (text: string, columns: number): string =>
  ' '.repeat(Math.max(0, columns - widthOf(text))) + text

/** Broken between words; a longer word has its own line. */
export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= columns)
      lines.splice(-1, 1, `${last} ${word}`)
    else lines.push(word)
  }
  return lines
}
