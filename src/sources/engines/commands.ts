/** `bartleby engines`: operations of engines, their success and durations. */

import { officeCommand } from '../../terminal/office.ts'
import { type Column, columnsText } from '../../terminal/table.ts'
import { ageOf, grouped, nowMs } from '../../terminal/words.ts'
import type { EngineOperation, EngineOverview, EngineOverviews } from './shapes.ts'

export const enginesCommand = officeCommand(
  'engines',
  'Show engines with their operations: runs, success, durations, and pending letters.',
  ['engines', "engines --json | jq '.items[] | select(.pending > 0) | .name'"],
).work(async ({ call, print, json, terminal }) => {
  const engines = await call<EngineOverviews>('GET', '/api/engines')
  const rows = engines.items.flatMap(rowsOf)
  print(engines, (_, style) => columnsText(columns(nowMs()), rows, terminal.screen?.columns, style))
  if (!json) terminal.err(engines.basis)
})

interface Row {
  readonly engine: EngineOverview
  /** Null: the engine has none. */
  readonly operation: EngineOperation | null
  readonly isFirst: boolean
}

function rowsOf(engine: EngineOverview): readonly Row[] {
  if (engine.operations.length === 0) return [{ engine, operation: null, isFirst: true }]
  return engine.operations.map((operation, index) => ({ engine, operation, isFirst: index === 0 }))
}

const columns = (now: number): readonly Column<Row>[] => [
  { heading: 'ENGINE', text: ({ engine, isFirst }) => (isFirst ? engine.name : ''), most: 30 },
  {
    heading: 'QUEUE',
    text: ({ engine, isFirst }) => (isFirst ? (engine.queue ?? '-') : ''),
    most: 40,
    least: 12,
  },
  {
    heading: 'PENDING',
    text: ({ engine, isFirst }) => (isFirst ? grouped(engine.pending) : ''),
    right: true,
    paint: ({ engine }, text, style) => (engine.pending > 0 ? style.yellow(text) : text),
  },
  { heading: 'OPERATION', text: ({ operation }) => operation?.operation ?? '-', flexible: true },
  number('RUNS', ({ runs }) => grouped(runs)),
  number('SUCCESS', ({ successRate }) => percent(successRate)),
  number('P50 MS', ({ p50Ms }) => milliseconds(p50Ms)),
  number('P95 MS', ({ p95Ms }) => milliseconds(p95Ms)),
  number('P99 MS', ({ p99Ms }) => milliseconds(p99Ms)),
  number('LAST', ({ lastAtUtc }) => ageOf(lastAtUtc, now)),
]

const number = (heading: string, text: (operation: EngineOperation) => string): Column<Row> => ({
  heading,
  text: ({ operation }) => (operation === null ? '-' : text(operation)),
  right: true,
})

/** Rounded down: 100% means all. */
const percent = (rate: number | null): string =>
  rate === null ? '-' : `${(Math.floor(rate * 1_000) / 10).toFixed(1)}%`

const milliseconds = (ms: number | null): string => (ms === null ? '-' : grouped(Math.round(ms)))
