/** One redrive of the list: who, why, how far. */
import { Anchor, Badge, Group, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { Redrive, RedriveState } from '../api/redrive-types.ts'
import { Panel } from '../kit/page.tsx'
import { visible } from '../kit/visible.ts'
import { Time } from '../time/time.tsx'
import { RedriveBar } from './redrive-bar.tsx'
import { RedriveButtons } from './redrive-buttons.tsx'
import { STATE_WORDS } from './redrive-words.ts'

export function RedriveCard({ redrive }: { readonly redrive: Redrive }) {
  const { id, sentence, state, reason } = redrive
  return (
    <Panel>
      <Group justify="space-between" align="flex-start">
        <div className="redrive-words">
          <Group gap="xs" wrap="nowrap" align="baseline">
            <StateBadge state={state} />
            <Text fw={600} className="wrapped" lineClamp={4}>
              <Anchor inherit renderRoot={(props) => <Link to="/redrives/$id" params={{ id }} {...props} />}>
                {visible(sentence)}
              </Anchor>
            </Text>
          </Group>
          <Text size="sm" c="var(--quiet)">
            <Who redrive={redrive} />
          </Text>
          {reason !== null && reason.trim() !== '' && (
            <Text size="sm" className="wrapped" lineClamp={4}>
              Reason: {visible(reason)}
            </Text>
          )}
        </div>
        <RedriveButtons redrive={redrive} />
      </Group>
      <RedriveBar redrive={redrive} />
    </Panel>
  )
}

/** Who began it when, and when it ended. */
export function Who({ redrive }: { readonly redrive: Redrive }) {
  const { plannedBy, plannedAtUtc, startedBy, startedAtUtc, endedAtUtc } = redrive
  return (
    <>
      {startedAtUtc === null ? (
        <>
          By {plannedBy}, planned <Time at={plannedAtUtc} />
        </>
      ) : (
        <>
          By {startedBy ?? plannedBy}, started <Time at={startedAtUtc} />
        </>
      )}
      {endedAtUtc !== null && (
        <>
          , ended <Time at={endedAtUtc} />
        </>
      )}
    </>
  )
}

const COLOURS: Readonly<Record<RedriveState, string>> = {
  planning: 'gray',
  planned: 'gray',
  canary: 'blue',
  running: 'blue',
  paused: 'yellow',
  done: 'teal',
  stopped: 'red',
  cancelled: 'gray',
}

/** The state in words and colour. */
export function StateBadge({ state }: { readonly state: RedriveState }) {
  return (
    <Badge variant="light" size="sm" className="badge" color={COLOURS[state]}>
      {STATE_WORDS[state]}
    </Badge>
  )
}
