/** `bartleby engines`: what engines do, how often that succeeds, and how long it takes. */
import type { Command } from 'commander'
import type { EngineOperation, EngineOverview, EngineOverviews } from '../client/source-types.ts'
import { type Column, columnsText } from './columns.ts'
import { withServer } from './office-call.ts'
import { grouped } from './progress.ts'
import { type ConnectionFlags, serverCommand } from './queues/connection.ts'
import { styleOf } from './style.ts'
import type { Terminal } from './terminal.ts'
import { ageOf, nowMs } from './times.ts'

export const enginesCommand = (terminal: Terminal): Command =>
  serverCommand(
    'engines',
    'Show engines with their operations: runs, success, durations, and pending letters.',
    ['engines', "engines --json | jq '.items[] | select(.pending > 0) | .name'"],
    '',
  ).action((flags: ConnectionFlags) =>
    withServer(flags, terminal, async (call) => {
      const engines = await call<EngineOverviews>('GET', '/api/engines')
      if (flags.json) return terminal.out(JSON.stringify(engines, null, 2))
      const width = terminal.screen?.columns
      terminal.out(columnsText(columns(nowMs()), engines.items.flatMap(rowsOf), width, styleOf(terminal)))
      terminal.err(engines.basis)
    }),
  )

interface Row {
  readonly engine: EngineOverview
  /** null: the engine has none. */
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

/** Cut down: what is not all is never shown as 100%. */
const percent = (rate: number | null): string =>
  rate === null ? '-' : `${(Math.floor(rate * 1_000) / 10).toFixed(1)}%`

const milliseconds = (ms: number | null): string => (ms === null ? '-' : grouped(Math.round(ms)))
