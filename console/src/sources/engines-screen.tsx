/** Engines: their pending letters, and how each of their operations did lately. */
import { VisuallyHidden } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { enginesQuery } from '../api/queries.ts'
import type { EngineOperation, EngineOverview } from '../api/types.ts'
import { HistoryLink } from '../history/history-link.tsx'
import { useKeys } from '../keys/keys.tsx'
import { Count } from '../kit/links.tsx'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { duration, grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { QueueLink } from './queue-link.tsx'
import { SuccessBar } from './success-bar.tsx'
import { useRefresh } from './use-refresh.ts'

/** One operation, or an engine that has none. */
interface Row {
  readonly engine: EngineOverview
  /** Engine, queue and letters stand in the first of its rows. */
  readonly isFirst: boolean
  readonly operation: EngineOperation | null
}

export function EnginesScreen() {
  const read = useQuery({ ...enginesQuery, refetchInterval: useRefresh() })
  const rows = rowsOf(read.data?.items ?? [])
  const cursor = useCursor(rows.length)
  useKeys('Engines', cursor.keys)
  return (
    <Page title="Engines" lead={read.data && `Runs, success and durations are of ${read.data.basis}.`}>
      <Shown read={read} what="engines">
        {() =>
          rows.length === 0 ? (
            <Empty title="No engines yet.">
              They are defined under <code>engines</code> in the configuration; see docs/operations.md.
            </Empty>
          ) : (
            <Table label="Engines" columns={COLUMNS} rows={rows} keyOf={keyOf} current={cursor} />
          )
        }
      </Shown>
    </Page>
  )
}

const keyOf = ({ engine, operation }: Row): string => `${engine.name} ${operation?.operation ?? ''}`

const rowsOf = (engines: readonly EngineOverview[]): readonly Row[] =>
  engines.flatMap((engine): readonly Row[] =>
    engine.operations.length === 0
      ? [{ engine, isFirst: true, operation: null }]
      : engine.operations.map((operation, place) => ({ engine, isFirst: place === 0, operation })),
  )

const took = (ms: number | null | undefined): string => (ms === null || ms === undefined ? '–' : duration(ms))

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'engine',
    title: 'Engine',
    cell: ({ engine: { name }, isFirst }) =>
      isFirst ? <strong>{name}</strong> : <VisuallyHidden>{name}</VisuallyHidden>,
  },
  {
    id: 'queue',
    title: 'Queue',
    cell: ({ engine: { queue }, isFirst }) =>
      !isFirst ? null : queue === null ? '–' : <QueueLink name={queue} />,
  },
  {
    id: 'pending',
    title: 'Pending',
    numeric: true,
    width: '5rem',
    cell: ({ engine: { name, pending }, isFirst }) =>
      isFirst ? (
        <Count
          of={pending}
          filter={{ engine: name, status: 'Pending' }}
          label={`pending letters of ${name}`}
        />
      ) : null,
  },
  {
    id: 'operation',
    title: 'Operation',
    width: '12rem',
    cell: ({ operation }) => operation?.operation ?? 'none',
  },
  { id: 'runs', title: 'Runs', numeric: true, width: '5rem', cell: (row) => <Runs row={row} /> },
  {
    id: 'failed',
    title: 'Failed',
    numeric: true,
    width: '5rem',
    cell: (row) => <Runs row={row} status="Failed" />,
  },
  {
    id: 'success',
    title: 'Success',
    numeric: true,
    width: '10rem',
    cell: ({ operation }) => (
      <SuccessBar share={operation?.successRate ?? null} of={`of ${operation?.runs ?? 0} runs`} />
    ),
  },
  { id: 'p50', title: 'p50', numeric: true, width: '5rem', cell: ({ operation }) => took(operation?.p50Ms) },
  { id: 'p95', title: 'p95', numeric: true, width: '5rem', cell: ({ operation }) => took(operation?.p95Ms) },
  { id: 'p99', title: 'p99', numeric: true, width: '5rem', cell: ({ operation }) => took(operation?.p99Ms) },
  {
    id: 'last',
    title: 'Last run',
    width: '7rem',
    cell: ({ operation }) => <Time at={operation?.lastAtUtc ?? null} />,
  },
]

/** How many runs, leading to them. */
function Runs({ row: { engine, operation }, status }: { readonly row: Row; readonly status?: 'Failed' }) {
  const count = status === undefined ? operation?.runs : operation?.failed
  if (operation === null || count === undefined || count === 0) return '–'
  return (
    <HistoryLink
      filter={{
        engine: engine.name,
        operation: operation.operation,
        ...(status === undefined ? {} : { status }),
      }}
      label={`${grouped(count)} ${status === undefined ? 'runs' : 'failed runs'} of ${operation.operation}`}
    >
      {grouped(count)}
    </HistoryLink>
  )
}
