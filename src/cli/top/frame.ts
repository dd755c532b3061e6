/** One picture of an office, fitted to the screen. Pure. */
import type { LetterCounts, LetterItem, SignatureGroup } from '../../client/letter-types.ts'
import type { QueueView } from '../../queues/shapes.ts'
import { type Column, columnsText, counted, cut, widthOf } from '../../terminal/table.ts'
import { printable, type Style } from '../../terminal/terminal.ts'
import { ageOf, grouped } from '../../terminal/words.ts'
import { letterColumns } from '../letters/list.ts'
import { groupColumns } from '../signatures.ts'

export interface Look {
  readonly version: string
  readonly environment: string
  readonly counts: LetterCounts
  readonly groups: readonly SignatureGroup[]
  readonly queues: readonly QueueView[]
  readonly newest: readonly LetterItem[]
}

export interface Canvas {
  /** Undefined: lines of any length. */
  readonly columns: number | undefined
  /** Undefined: as many as it takes. */
  readonly rows: number | undefined
  readonly style: Style
}

export interface Picture {
  readonly url: string
  /** Null: no answer yet. */
  readonly look: Look | null
  /** Why there is no answer; null when there is. */
  readonly trouble: string | null
  readonly now: number
  readonly lookedAt: number
}

interface Panel {
  readonly title: string
  readonly lines: readonly string[]
  /** Its share of free rows. */
  readonly weight: number
}

/** A blank line and the title. */
const PANEL_FRAME = 2
/** Headings and a row. */
const LEAST_LINES = 2
const UNBOUNDED_ROWS = 10

/** Never more lines than rows. */
export function frame(picture: Picture, canvas: Canvas): readonly string[] {
  const { look } = picture
  const head = headLines(picture, canvas)
  if (look === null) return head
  const { columns, rows, style } = canvas
  const all: readonly Panel[] = [
    panel('Letters by source', sourceLines(look.counts), 1),
    panel('Errors', tableOf(groupColumns(picture.now, columns), look.groups, 'no letters, no errors'), 3),
    panel('Queues', tableOf(queueColumns(picture.now), look.queues, 'no queues'), 2),
    panel('Newest letters', tableOf(letterColumns(picture.now, 'short'), look.newest, 'no letters'), 3),
  ]
  const panels = rows === undefined ? all : thatFit(all, rows - head.length)
  const free = rows === undefined ? undefined : rows - head.length - panels.length * PANEL_FRAME
  const shares = share(panels, free)
  const body = panels.flatMap(({ title, lines }, index) => {
    const shown = lines.slice(0, shares[index])
    return shown.length === 0 ? [] : ['', style.bold(title), ...shown]
  })
  return [...head, ...body].slice(0, rows)

  function tableOf<Row>(of: readonly Column<Row>[], items: readonly Row[], none: string): readonly string[] {
    if (items.length === 0) return [style.dim(none)]
    return columnsText(of, items.slice(0, rows ?? UNBOUNDED_ROWS), columns, style).split('\n')
  }
}

const panel = (title: string, lines: readonly string[], weight: number): Panel => ({ title, lines, weight })

function headLines(
  { url, look, trouble, now, lookedAt }: Picture,
  { columns, style }: Canvas,
): readonly string[] {
  const fitting = (text: string) => (columns === undefined ? text : cut(text, columns))
  const place = printable(url)
  if (look === null) {
    return [
      style.bold(fitting(`bartleby  ${place}`)),
      style.red(fitting(printable(trouble ?? 'asking the server …'))),
    ]
  }
  const { version, environment, counts } = look
  const first = fitting(printable(`bartleby ${version}  ${environment}  ${url}`))
  const clock = new Date(lookedAt).toISOString().slice(11, 19)
  const gap = columns === undefined ? 2 : columns - widthOf(first) - clock.length - 1
  const right = gap < 2 ? '' : `${' '.repeat(gap)}${style.dim(`${clock}Z`)}`
  const state =
    trouble === null
      ? statusLine(counts, style)
      : style.red(
          fitting(
            `no answer for ${ageOf(new Date(lookedAt).toISOString(), now)}, trying on: ${printable(trouble)}`,
          ),
        )
  return [`${style.bold(first)}${right}`, state]
}

const statusLine = ({ totals: { Pending, Resolved, Expired } }: LetterCounts, style: Style): string =>
  `${style.yellow(`${grouped(Pending)} pending`)}   ${grouped(Resolved)} resolved   ${grouped(Expired)} expired`

function sourceLines({ items }: LetterCounts): readonly string[] {
  const bySource = Map.groupBy(items, ({ source = '' }) => source)
  const lines = [...bySource].map(([source, counts]) => {
    const of = (status: string) =>
      grouped(counts.filter((each) => each.status === status).reduce((sum, { count }) => sum + count, 0))
    return `${source.padEnd(10)}${of('Pending').padStart(10)} pending${of('Resolved').padStart(12)} resolved${of('Expired').padStart(10)} expired`
  })
  return lines.length === 0 ? ['no letters'] : lines.toSorted()
}

const queueColumns = (now: number): readonly Column<QueueView>[] => [
  { heading: 'QUEUE', text: ({ name }) => name, flexible: true },
  counted('READY', ({ ready }) => ready),
  counted('LEASED', ({ leased }) => leased),
  counted('SCHEDULED', ({ scheduled }) => scheduled),
  counted('DEAD', ({ dead }) => dead),
  counted('LETTERS', ({ letters }) => letters),
  { heading: 'OLDEST', text: ({ oldestAtUtc }) => ageOf(oldestAtUtc, now), right: true },
]

/** On a low screen lighter panels give way. */
function thatFit(panels: readonly Panel[], rows: number): readonly Panel[] {
  const needed = panels.length * (PANEL_FRAME + LEAST_LINES)
  if (needed <= rows || panels.length === 1) return panels
  const lightest = panels.reduce((least, each) => (each.weight < least.weight ? each : least))
  return thatFit(
    panels.filter((each) => each !== lightest),
    rows,
  )
}

/** No panel gets more rows than lines; the rest is shared by weight. */
function share(panels: readonly Panel[], free: number | undefined): readonly number[] {
  const rows = panels.map(() => 0)
  if (free === undefined) return panels.map(({ lines }) => lines.length)
  for (let left = Math.max(0, free); left > 0; left--) {
    // To the panel with the least for its weight that has lines left.
    let poorest = -1
    let least = Number.POSITIVE_INFINITY
    for (const [index, { lines, weight }] of panels.entries()) {
      const has = (rows[index] ?? 0) / weight
      if ((rows[index] ?? 0) < lines.length && has < least) [poorest, least] = [index, has]
    }
    if (poorest < 0) break
    rows[poorest] = (rows[poorest] ?? 0) + 1
  }
  return rows
}
