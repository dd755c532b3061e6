/** Where letters come from: how each source is, and how many of its letters wait. */
import { Anchor, Skeleton, Text } from '@mantine/core'
import { Link, type LinkProps } from '@tanstack/react-router'
import type { Overview } from '../api/types.ts'
import { Count, QueryLink } from '../kit/links.tsx'
import { Panel } from '../kit/page.tsx'
import { HealthBadge } from '../kit/status.tsx'

type Source = Overview['sources'][number]

const SCREENS: Readonly<
  Record<string, { readonly title: string; readonly to: Exclude<LinkProps['to'], undefined> } | undefined>
> = {
  queues: { title: 'Queues', to: '/sources/queues' },
  engines: { title: 'Engines', to: '/sources/engines' },
  outbox: { title: 'Outbox', to: '/sources/outbox' },
  webhooks: { title: 'Webhooks', to: '/sources/webhooks' },
  kafka: { title: 'Kafka', to: '/sources/kafka' },
}
const ROWS = 6

export function SourcesPanel({ sources }: { readonly sources: readonly Source[] | undefined }) {
  return (
    <Panel title="Sources">
      <ul className="sources">
        {sources === undefined
          ? Array.from({ length: ROWS }, (_, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
              <li key={place}>
                <Skeleton height="1.4rem" />
              </li>
            ))
          : sources.map((source) => <SourceRow key={source.source} source={source} />)}
      </ul>
    </Panel>
  )
}

function SourceRow({ source: { source, pending, health, note } }: { readonly source: Source }) {
  const screen = SCREENS[source]
  return (
    <li>
      <div className="source-name">
        {screen === undefined ? (
          <QueryLink query={`source:${source}`}>
            {source === 'http' ? 'Reported over HTTP' : source}
          </QueryLink>
        ) : (
          <Anchor inherit renderRoot={(props) => <Link to={screen.to} {...props} />}>
            {screen.title}
          </Anchor>
        )}
        {note !== null && (
          <Text size="xs" c="var(--quiet)">
            {note}
          </Text>
        )}
      </div>
      <HealthBadge health={health} />
      <span className="source-count numbers">
        <Count of={pending} filter={{ source, status: 'Pending' }} label={`pending from ${source}`} />
      </span>
    </li>
  )
}
