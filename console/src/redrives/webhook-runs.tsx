/** Requeues and purges of all dead jobs of a consumer: the server runs these itself, and goes on after a restart. */
import { Progress, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Panel, Shown } from '../kit/page.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { type WebhookRun, webhookRunsQuery } from './webhook-runs-query.ts'

const COLUMNS: readonly Column<WebhookRun>[] = [
  { id: 'kind', title: 'Run', width: '7rem', cell: ({ kind }) => (kind === 'purge' ? 'Purge' : 'Requeue') },
  {
    id: 'of',
    title: 'Of',
    cell: ({ channelId, consumerId }) => (
      <span className="wrapped">
        {channelId} → {consumerId}
      </span>
    ),
  },
  {
    id: 'progress',
    title: 'Progress',
    width: '14rem',
    cell: (run) => (
      <>
        <Progress
          value={run.expected === 0 ? 100 : Math.min(100, (run.done / run.expected) * 100)}
          aria-label={`${run.done} of about ${run.expected}`}
        />
        <Text size="xs">
          {grouped(run.done)} of about {grouped(run.expected)}
        </Text>
      </>
    ),
  },
  {
    id: 'state',
    title: 'State',
    width: '6rem',
    cell: ({ state }) => (state === 'running' ? 'Running' : 'Over'),
  },
  { id: 'by', title: 'By', width: '8rem', cell: ({ by }) => by },
  { id: 'started', title: 'Begun', width: '7rem', cell: ({ startedAtUtc }) => <Time at={startedAtUtc} /> },
  { id: 'ended', title: 'Ended', width: '7rem', cell: ({ finishedAtUtc }) => <Time at={finishedAtUtc} /> },
]

export function WebhookRuns() {
  const read = useQuery(webhookRunsQuery)
  return (
    <Panel title="Runs over dead webhook jobs">
      <Text size="sm" c="var(--quiet)">
        These continue without a browser, and after a restart.
      </Text>
      <Shown read={read} what="the runs">
        {({ runs }) =>
          runs.length === 0 ? (
            <Text size="sm">
              None yet. Dead jobs of a consumer are requeued or purged under Sources, Webhooks.
            </Text>
          ) : (
            <Table label="Runs of webhooks" columns={COLUMNS} rows={runs} keyOf={({ id }) => id} />
          )
        }
      </Shown>
    </Panel>
  )
}
