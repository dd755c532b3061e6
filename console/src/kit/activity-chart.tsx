/** Activity over time: a chart with a legend that hides lines, the numbers under the pointer, and the same as a table. */
import './activity-chart.css'
import { Group, SegmentedControl, Stack, Text, Title, UnstyledButton } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useState } from 'react'
import type { Activity, Range, SeriesName } from '../api/types.ts'
import { grouped } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import { busyBuckets, LINES, RANGE_WORDS, spoken, stretch, sumOf } from './activity-series.ts'
import { Panel, Trouble } from './page.tsx'

const loadPlot = () => import('./activity-plot.tsx')
const ActivityPlot = lazy(loadPlot)

export interface ActivityChartProps {
  readonly read: UseQueryResult<Activity>
  /** The same list on every render. */
  readonly names: readonly SeriesName[]
  readonly range: Range
  readonly ranges: readonly Range[]
  readonly setRange: (range: Range) => void
}

export function ActivityChart({ read, names, range, ranges, setRange }: ActivityChartProps) {
  const { zone } = useTime()
  const [hidden, setHidden] = useState<ReadonlySet<SeriesName>>(new Set())
  const [pointed, setPointed] = useState<number | null>(null)
  const activity = read.data
  // The drawing and the numbers are fetched at the same time, once the page itself is there.
  useEffect(() => void loadPlot().catch(() => {}), [])
  const toggle = (name: SeriesName) =>
    setHidden((before) => {
      const after = new Set(before)
      if (!after.delete(name)) after.add(name)
      return after
    })
  return (
    <Panel>
      <Group justify="space-between">
        <Group gap="sm" align="baseline">
          <Title order={2} size="h5">
            Activity
          </Title>
          <Text size="xs" c="var(--quiet)" className="numbers" aria-hidden>
            {activity !== undefined && pointed !== null
              ? stretch(activity, pointed, zone)
              : `in the last ${RANGE_WORDS[range]}`}
          </Text>
        </Group>
        <SegmentedControl
          size="xs"
          aria-label="Range of the chart"
          data={ranges.map((each) => ({ value: each, label: RANGE_WORDS[each] }))}
          value={range}
          onChange={(chosen) => setRange(chosen as Range)}
        />
      </Group>
      {read.error !== null && activity === undefined ? (
        <Trouble error={read.error} retry={() => void read.refetch()} />
      ) : (
        <>
          <fieldset className="legend" aria-label="Lines of the chart">
            {names.map((name) => (
              <LegendButton
                key={name}
                name={name}
                count={numberOf(activity, name, pointed)}
                isShown={!hidden.has(name)}
                toggle={() => toggle(name)}
              />
            ))}
          </fieldset>
          <div
            className="plot-frame"
            role="img"
            aria-label={`Activity in ${RANGE_WORDS[range]}: ${activity === undefined ? 'being read' : spoken(activity, names)}`}
          >
            <Suspense>
              {activity !== undefined && (
                <ActivityPlot activity={activity} names={names} hidden={hidden} point={setPointed} />
              )}
            </Suspense>
          </div>
          <div className="as-table">
            {activity !== undefined && <ActivityTable activity={activity} names={names} />}
          </div>
        </>
      )}
    </Panel>
  )
}

function numberOf(activity: Activity | undefined, name: SeriesName, pointed: number | null): number | null {
  if (activity === undefined) return null
  return pointed === null ? sumOf(activity.series[name]) : (activity.series[name][pointed] ?? 0)
}

function LegendButton({
  name,
  count,
  isShown,
  toggle,
}: {
  readonly name: SeriesName
  readonly count: number | null
  readonly isShown: boolean
  readonly toggle: () => void
}) {
  return (
    <UnstyledButton className="legend-button" aria-pressed={isShown} onClick={toggle}>
      <svg className="legend-line" viewBox="0 0 28 8" aria-hidden data-series={name}>
        <line x1="1" y1="4" x2="27" y2="4" strokeDasharray={LINES[name].dash.join(' ')} />
      </svg>
      {LINES[name].word}
      <strong>{count === null ? '–' : grouped(count)}</strong>
    </UnstyledButton>
  )
}

/** The same numbers as text, made when they are asked for. */
function ActivityTable({
  activity,
  names,
}: {
  readonly activity: Activity
  readonly names: readonly SeriesName[]
}) {
  const { zone } = useTime()
  const [isOpen, setOpen] = useState(false)
  const busy = isOpen ? busyBuckets(activity, names) : []
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {isOpen && (
        <Stack gap={4} mt={4}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
          <section className="as-table-frame" tabIndex={0} aria-label="Activity as a table">
            <table aria-label="Activity, the newest first">
              <thead>
                <tr>
                  <th scope="col">Time</th>
                  {names.map((name) => (
                    <th key={name} scope="col">
                      {LINES[name].word}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {busy.map((place) => (
                  <tr key={place}>
                    <th scope="row">{stretch(activity, place, zone)}</th>
                    {names.map((name) => (
                      <td key={name}>{grouped(activity.series[name][place] ?? 0)}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
          <Text size="xs" c="var(--quiet)">
            {busy.length === 0 ? 'Nothing happened.' : 'Buckets with no activity are left out.'}
          </Text>
        </Stack>
      )}
    </details>
  )
}
