/** The causes with the most pending letters: where triage begins. */
import { Anchor, Skeleton, Stack, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { usePlan } from '../acts/plan-context.ts'
import { signaturesQuery } from '../api/queries.ts'
import type { SignatureGroup } from '../api/types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { Count, SignatureLink } from '../kit/links.tsx'
import { Empty, Panel, Trouble } from '../kit/page.tsx'
import { Sparkline } from '../kit/sparkline.tsx'
import { useSteady } from '../kit/steady.ts'
import { type Column, Table } from '../kit/table.tsx'
import { lettersOf, nameOf, trendWords } from '../signatures/group.ts'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { perHourOf } from './surge.ts'

const SHOWN = 8
const keyOf = ({ signature }: SignatureGroup) => signature

/** What the causes are read with; the sentence above them reads the same. */
export const causesQuery = () => signaturesQuery({}, SHOWN)

export function Causes() {
  const read = useInfiniteQuery(causesQuery())
  const plan = usePlan()
  const groups = read.data?.pages[0]?.items
  const { rows, hold } = useSteady('top', groups ?? [], keyOf)
  const columns: readonly Column<SignatureGroup>[] = [
    {
      id: 'title',
      title: 'Cause',
      oneLine: true,
      cell: (group) => <SignatureLink signature={group.signature}>{nameOf(group)}</SignatureLink>,
    },
    {
      id: 'engines',
      title: 'Engine',
      width: '9rem',
      oneLine: true,
      cell: ({ engines }) => engines.join(', '),
    },
    {
      id: 'pending',
      title: 'Pending',
      numeric: true,
      width: '5.5rem',
      cell: ({ open, signature }) => (
        <Count of={open} filter={{ signature, status: 'Pending' }} label="pending of this cause" />
      ),
    },
    {
      id: 'trend',
      title: '24 h',
      narrow: 'hidden',
      width: '7.5rem',
      cell: ({ trend }) => <Sparkline values={trend} label={trendWords(trend)} />,
    },
    {
      id: 'rate',
      title: 'Per hour',
      numeric: true,
      width: '5.5rem',
      cell: (group) => grouped(perHourOf(group)),
    },
    {
      id: 'seen',
      title: 'Last',
      width: '6rem',
      cell: ({ lastSeenAtUtc }) => <Time at={lastSeenAtUtc} />,
    },
    {
      id: 'acts',
      title: 'Retry',
      narrow: 'act',
      width: '5rem',
      cell: (group) => (
        <ActButton
          size="compact-xs"
          variant="default"
          needs="operator"
          refusal={group.open === 0 ? 'None of its letters is pending.' : null}
          aria-label={`Retry… ${lettersOf(group)}`}
          onClick={() =>
            plan({
              act: 'retry',
              filter: { signature: group.signature, status: 'Pending' },
              what: lettersOf(group),
            })
          }
        >
          Retry…
        </ActButton>
      ),
    },
  ]
  return (
    <Panel
      title="Causes"
      beside={
        <Anchor size="sm" renderRoot={(props) => <Link to="/signatures" {...props} />}>
          All causes
        </Anchor>
      }
    >
      {groups === undefined && read.error !== null && (
        <Trouble error={read.error} retry={() => void read.refetch()} />
      )}
      {groups === undefined && read.error === null && <Placeholder />}
      {groups?.length === 0 && (
        <Empty title="No letters yet.">
          Letters come from queues, engines, the outbox, webhooks and Kafka, or are reported with{' '}
          <code>POST /api/dlq</code>. See the <Anchor href="/docs">documentation</Anchor>.
        </Empty>
      )}
      {groups !== undefined && groups.length > 0 && (
        <div {...hold}>
          <Table label="Causes" columns={columns} rows={rows.slice(0, SHOWN)} keyOf={keyOf} />
        </div>
      )}
    </Panel>
  )
}

/** Keeps the room of the rows. */
function Placeholder() {
  return (
    <Stack gap={6} role="status">
      <Text size="sm" c="var(--quiet)">
        Reading causes…
      </Text>
      {Array.from({ length: SHOWN }, (_, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
        <Skeleton key={place} height="2rem" />
      ))}
    </Stack>
  )
}
