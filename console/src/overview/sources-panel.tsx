/** Where letters come from: how each source does, why, and how many of its letters wait. */
import { Anchor, Skeleton, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { Overview, SignatureGroup } from '../api/types.ts'
import { SCREENS } from '../frame/screens.ts'
import { Count, QueryLink } from '../kit/links.tsx'
import { Panel } from '../kit/page.tsx'
import { useSession } from '../kit/role.tsx'
import { HealthBadge } from '../kit/status.tsx'
import { useTime } from '../time/time.tsx'
import { conditionOf } from './condition.ts'

type Source = Overview['sources'][number]

const ROWS = 6

export function SourcesPanel({
  sources,
  causes,
}: {
  readonly sources: readonly Source[] | undefined
  readonly causes: readonly SignatureGroup[]
}) {
  const { now } = useTime()
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
          : sources.map((source) => (
              <SourceRow key={source.source} source={{ ...source, ...conditionOf(source, causes, now) }} />
            ))}
      </ul>
    </Panel>
  )
}

function SourceRow({ source: { source, pending, health, note } }: { readonly source: Source }) {
  const { navigation } = useSession()
  const screen = SCREENS.find(({ to }) => to === `/sources/${source}`)
  const title = navigation.find(({ name }) => name === source)?.title ?? source
  return (
    <li>
      <div className="source-name">
        {screen === undefined ? (
          <QueryLink query={`source:${source}`}>{title}</QueryLink>
        ) : (
          <Anchor inherit renderRoot={(props) => <Link to={screen.to} {...props} />}>
            {title}
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
