/** One queue, inspected: its settings, what lies in each partition, and the next items with their payloads. */
import { Drawer, NativeSelect, SegmentedControl, Stack, Table, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { CallFailure } from '../api/call.ts'
import type { QueueOverview } from '../api/types.ts'
import { type FactList, Facts } from '../kit/facts.tsx'
import { Count } from '../kit/links.tsx'
import { Empty, Shown } from '../kit/page.tsx'
import { grouped } from '../time/format.ts'
import { FullTime } from '../time/time.tsx'
import { roundDuration, shortDuration } from './go-duration.ts'
import { QueueItemCard } from './queue-item-card.tsx'
import { QueueLink } from './queue-link.tsx'
import {
  ITEMS_SHOWN,
  type PartitionStats,
  type QueueSettings,
  queueItemsQuery,
  queueSettingsQuery,
  queueStatsQuery,
} from './queue-queries.ts'
import { useRefresh } from './use-refresh.ts'

export interface QueueDrawerProps {
  /** null: closed. */
  readonly queue: string | null
  /** As the list has it; undefined when it is on another page of the list. */
  readonly overview: QueueOverview | undefined
  close(): void
}

export function QueueDrawer({ queue, overview, close }: QueueDrawerProps) {
  return (
    <Drawer
      opened={queue !== null}
      onClose={close}
      position="right"
      size="xl"
      title={`Queue ${queue ?? ''}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {queue !== null && <Inspection key={queue} queue={queue} overview={overview} />}
    </Drawer>
  )
}

/** The queue API has no code of its own for it: this is how its message begins. */
const UNKNOWN = 'queue does not exist'

function Inspection({
  queue,
  overview,
}: {
  readonly queue: string
  readonly overview: QueueOverview | undefined
}) {
  const settings = useQuery(queueSettingsQuery(queue))
  const stats = useQuery({ ...queueStatsQuery(queue), refetchInterval: useRefresh() })
  const [logical] = stats.data?.logicalQueues ?? []
  const partitions = logical?.partitions ?? []
  if (settings.error instanceof CallFailure && settings.error.message.startsWith(UNKNOWN)) {
    return (
      <Empty title="There is no queue of this name.">
        It may have been deleted, or its name is written otherwise: large and small letters differ.
      </Empty>
    )
  }
  return (
    <Stack gap="lg">
      <section>
        <Title order={2} size="h5" mb="xs">
          Settings
        </Title>
        <Shown read={settings} what="its settings">
          {(found) => <Facts of={factsOf(found, overview?.onDeath)} />}
        </Shown>
      </section>
      <section>
        <Title order={2} size="h5" mb="xs">
          Now
        </Title>
        {overview !== undefined && overview.letters > 0 && (
          <Text size="sm" mb="xs" className="prose">
            <Count
              of={overview.letters}
              filter={{ originalQueue: queue, status: 'Pending' }}
              label={`pending letters from ${queue}`}
            />{' '}
            pending letters came from it.
          </Text>
        )}
        <Shown read={stats} what="its counts">
          {() => (
            <>
              <Partitions of={partitions} />
              <Text size="sm" c="var(--quiet)" mt="xs">
                On this server {grouped(logical?.lease_waiting ?? 0)} wait to lease,{' '}
                {grouped(logical?.produce_waiting ?? 0)} to produce and{' '}
                {grouped(logical?.complete_waiting ?? 0)} to complete.
              </Text>
            </>
          )}
        </Shown>
      </section>
      <Items queue={queue} partitions={partitions.map(({ partition = 0 }) => partition)} />
    </Stack>
  )
}

/** The queue API does not tell; the list does. */
const NO_DEAD_QUEUE = {
  letter: 'none: what dies becomes a letter that lies in no queue',
  delete: 'none: what dies is deleted, and no letter is kept',
}

const factsOf = (settings: QueueSettings, onDeath: QueueOverview['onDeath'] | undefined): FactList => ({
  Attempts: settings.max_attempts ? `${settings.max_attempts}, then an item is dead` : 'no limit',
  'Dead queue': settings.dead_queue ? (
    <QueueLink name={settings.dead_queue} />
  ) : onDeath === undefined ? (
    'none'
  ) : (
    NO_DEAD_QUEUE[onDeath]
  ),
  Lease: `${shortDuration(settings.lease_timeout)}, then an item is offered again`,
  'Life of an item': `${shortDuration(settings.expire_timeout)}, then it is dead`,
  Partitions: grouped(settings.requested_partitions),
  Reference: settings.reference || undefined,
  Created: <FullTime at={settings.created_at} />,
  Changed: <FullTime at={settings.updated_at} />,
})

function Partitions({ of }: { readonly of: readonly PartitionStats[] }) {
  return (
    <Table aria-label="Partitions" horizontalSpacing="xs">
      <Table.Thead>
        <Table.Tr>
          {['Partition', 'Items', 'Leased', 'Scheduled', 'Mean age'].map((title) => (
            <Table.Th key={title} ta="right">
              {title}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.map(({ partition = 0, total = 0, total_leased = 0, scheduled = 0, average_age }) => (
          <Table.Tr key={partition}>
            <Table.Td ta="right">{partition}</Table.Td>
            <Table.Td ta="right">{grouped(total)}</Table.Td>
            <Table.Td ta="right">{grouped(total_leased)}</Table.Td>
            <Table.Td ta="right">{grouped(scheduled)}</Table.Td>
            <Table.Td ta="right">
              {total === 0 || average_age === undefined ? '–' : roundDuration(average_age)}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}

const WHICH = [
  { value: 'next', label: 'Next' },
  { value: 'scheduled', label: 'Scheduled' },
]

function Items({ queue, partitions }: { readonly queue: string; readonly partitions: readonly number[] }) {
  const [which, setWhich] = useState<'next' | 'scheduled'>('next')
  const [partition, setPartition] = useState(0)
  const items = useQuery({ ...queueItemsQuery(queue, partition, which), refetchInterval: useRefresh() })
  return (
    <section>
      <Title order={2} size="h5" mb="xs">
        Items
      </Title>
      <Stack gap="sm">
        <SegmentedControl
          size="xs"
          aria-label="Which items"
          data={WHICH}
          value={which}
          onChange={(chosen) => setWhich(chosen === 'scheduled' ? 'scheduled' : 'next')}
        />
        {partitions.length > 1 && (
          <NativeSelect
            size="xs"
            label="Partition"
            data={partitions.map(String)}
            value={String(partition)}
            onChange={(event) => setPartition(Number(event.currentTarget.value))}
          />
        )}
        <Shown read={items} what="items">
          {(found) =>
            found.length === 0 ? (
              <Text size="sm">
                {which === 'next' ? 'Nothing waits here to be leased.' : 'Nothing is scheduled for later.'}
              </Text>
            ) : (
              <>
                {found.map((item) => (
                  <QueueItemCard key={item.id} item={item} />
                ))}
                {found.length === ITEMS_SHOWN && (
                  <Text size="sm" c="var(--quiet)">
                    The first {ITEMS_SHOWN} are shown; <code>bartleby queues peek {queue}</code> shows more.
                  </Text>
                )}
              </>
            )
          }
        </Shown>
      </Stack>
    </section>
  )
}
