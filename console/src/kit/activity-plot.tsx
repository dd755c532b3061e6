/** The drawing of activity on a canvas. Loaded only where one is shown, so that no first page waits for it. */
import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import type { Activity, SeriesName } from '../api/types.ts'
import { useTime } from '../time/time.tsx'
import { axisMark, bucketAt, edgesOf, LINES } from './activity-series.ts'

export interface ActivityPlotProps {
  readonly activity: Activity
  readonly names: readonly SeriesName[]
  readonly hidden: ReadonlySet<SeriesName>
  /** The stretch of time under the pointer. */
  readonly point: (place: number | null) => void
}

const HEIGHT = 216
/** Letters are whole: axes have no marks between them. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7]
const LEAST_TOP = 4

export default function ActivityPlot({ activity, names, hidden, point }: ActivityPlotProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const { zone } = useTime()
  const scheme = useComputedColorScheme('light')
  const latest = useRef({ activity, hidden, point })
  latest.current = { activity, hidden, point }

  // `scheme` is not read, but the colours that are read follow it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => {
    const parent = place.current
    if (parent === null) return
    const colours = getComputedStyle(parent)
    const colour = (name: string) => colours.getPropertyValue(name).trim()
    const axis = { stroke: colour('--quiet'), font: `12px ${colours.fontFamily}`, ticks: { show: false } }
    const grid = { stroke: colour('--line'), width: 1 }
    const drawn = new UPlot(
      {
        width: parent.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        padding: [8, 20, 0, 0],
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: { y: { range: (_, __, most) => [0, Math.max(LEAST_TOP, (most ?? 0) * 1.05)] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 28,
            space: 64,
            values: (_, marks, __, ___, step) => marks.map((mark) => axisMark(mark, step, zone)),
          },
          {
            ...axis,
            grid,
            size: 52,
            incrs: STEPS,
            values: (_, marks) => marks.map((mark) => mark.toLocaleString('en-US')),
          },
        ],
        tzDate: (seconds) =>
          zone === 'utc' ? UPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC') : new Date(seconds * 1_000),
        series: [
          {},
          ...names.map((name) => ({
            label: LINES[name].word,
            show: !latest.current.hidden.has(name),
            stroke: colour(`--series-${name}`),
            ...(name === 'arrived' ? { fill: colour('--series-arrived-fill') } : {}),
            width: 2,
            dash: [...LINES[name].dash],
            points: { show: false },
            // A number holds for the whole stretch.
            ...(UPlot.paths.stepped === undefined ? {} : { paths: UPlot.paths.stepped({ align: 1 }) }),
          })),
        ],
        hooks: {
          setCursor: [
            (self) => {
              const left = self.cursor.left ?? -1
              const { activity: shown, point: tell } = latest.current
              tell(left < 0 ? null : bucketAt(shown, self.posToVal(left, 'x')))
            },
          ],
        },
      },
      alignedOf(latest.current.activity, names),
      parent,
    )
    plot.current = drawn
    const watch = new ResizeObserver(() => drawn.setSize({ width: parent.clientWidth, height: HEIGHT }))
    watch.observe(parent)
    return () => {
      watch.disconnect()
      drawn.destroy()
      plot.current = null
    }
  }, [names, zone, scheme])

  useEffect(() => plot.current?.setData(alignedOf(activity, names)), [activity, names])

  useEffect(() => {
    for (const [at, name] of names.entries()) plot.current?.setSeries(at + 1, { show: !hidden.has(name) })
  }, [names, hidden])

  return <div ref={place} className="plot" aria-hidden />
}

/** The last number is given twice: its line reaches to the end. */
function alignedOf(activity: Activity, names: readonly SeriesName[]): UPlot.AlignedData {
  const lines = names.map((name) => {
    const values = activity.series[name]
    return [...values, values.at(-1) ?? 0]
  })
  return [[...edgesOf(activity)], ...lines]
}
