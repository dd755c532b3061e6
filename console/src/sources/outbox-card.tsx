/** One outbox: its numbers, whether it is well, and if not, why. */
import { Alert, Anchor, Badge, List, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { type FactList, Facts } from '../kit/facts.tsx'
import { Count } from '../kit/links.tsx'
import { Panel } from '../kit/page.tsx'
import { duration, grouped, span } from '../time/format.ts'
import type { MessageStatus, OutboxHealth, OutboxHealthStatus, OutboxMetrics } from './outbox-queries.ts'
import { percent } from './success-bar.tsx'

export interface OutboxCardProps {
  readonly metrics: OutboxMetrics
  readonly health: OutboxHealth | undefined
}

export function OutboxCard({ metrics, health }: OutboxCardProps) {
  const { outbox, error } = metrics
  return (
    <Panel title={outbox} beside={health !== undefined && <HealthWord status={health.status} />}>
      <Facts of={factsOf(metrics)} />
      {error !== null ? (
        <Alert role="note" color="red" title="It cannot be read">
          {error}
        </Alert>
      ) : (
        <Reasons of={health?.reasons ?? []} />
      )}
    </Panel>
  )
}

const WORDS: Readonly<Record<OutboxHealthStatus, readonly [word: string, colour: string]>> = {
  ok: ['Healthy', 'teal'],
  degraded: ['Degraded', 'yellow'],
  unhealthy: ['Unhealthy', 'red'],
}

function HealthWord({ status }: { readonly status: OutboxHealthStatus }) {
  const [word, colour] = WORDS[status]
  return (
    <Badge variant="light" color={colour} size="sm" className="badge">
      {word}
    </Badge>
  )
}

function Reasons({ of }: { readonly of: readonly string[] }) {
  if (of.length === 0) return null
  return (
    <div>
      <Text size="sm" fw={600}>
        Why it is not well
      </Text>
      <List size="sm">
        {of.map((reason) => (
          <List.Item key={reason}>{reason}</List.Item>
        ))}
      </List>
    </div>
  )
}

const NOT_KNOWN = 'not known'

function factsOf(metrics: OutboxMetrics): FactList {
  const { outbox, oldestAgeSeconds, dead, windowSeconds, dispatchSeconds } = metrics
  const { count, sum } = dispatchSeconds
  return {
    Backlog: <Messages of={metrics.backlog} outbox={outbox} status="pending" />,
    'of them failed before': <Messages of={metrics.failedPending} outbox={outbox} status="failed" />,
    'Oldest of them':
      oldestAgeSeconds === null ? NOT_KNOWN : metrics.backlog === 0 ? '–' : span(oldestAgeSeconds * 1_000),
    Dead:
      dead === null ? (
        NOT_KNOWN
      ) : (
        <Count
          of={dead}
          filter={{ engine: 'outbox', originalQueue: outbox, status: 'Pending' }}
          label={`dead messages of ${outbox}`}
        />
      ),
    [`Last ${windowSeconds} s`]: `${metrics.throughputPerSecond.toFixed(1)} a second, ${percent(metrics.failureRatio)} failed`,
    'Since the start': `${grouped(metrics.dispatchedTotal)} delivered, ${grouped(metrics.failuresTotal)} failed`,
    'A delivery takes': count === 0 ? '–' : `${duration((sum / count) * 1_000)} on average`,
    'Added twice':
      metrics.duplicatesTotal === 0
        ? undefined
        : `${grouped(metrics.duplicatesTotal)}, ${grouped(metrics.conflictsTotal)} of them with another payload`,
  }
}

/** A count that leads to its messages. */
function Messages({
  of,
  outbox,
  status,
}: {
  readonly of: number | null
  readonly outbox: string
  readonly status: MessageStatus
}) {
  if (of === null) return NOT_KNOWN
  return (
    <Anchor
      inherit
      renderRoot={(props) => (
        <Link
          to="/sources/outbox"
          search={{ outbox, status }}
          {...props}
          aria-label={`${grouped(of)} ${status} messages of ${outbox}`}
        />
      )}
    >
      {grouped(of)}
    </Anchor>
  )
}
