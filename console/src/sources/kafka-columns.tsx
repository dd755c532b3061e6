/** The columns of services and partitions. */
import { Anchor, Badge, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Count } from '../kit/links.tsx'
import type { Column } from '../kit/table.tsx'
import type { KafkaPartition } from './kafka-queries.ts'
import type { ServiceRow } from './kafka-services.ts'

export const SERVICE_COLUMNS: readonly Column<ServiceRow>[] = [
  { id: 'name', title: 'Service', width: '12rem', cell: (row) => <Name row={row} /> },
  { id: 'pending', title: 'Pending by original topic', cell: (row) => <Pending row={row} /> },
  { id: 'dlq', title: 'DLQ topic', cell: ({ settings }) => settings?.dlqTopic ?? '–' },
  { id: 'retry', title: 'Retry topic', cell: ({ settings }) => retryTopicOf(settings?.retryTopic) },
  { id: 'profile', title: 'Profile', width: '7rem', cell: ({ settings }) => settings?.profile ?? '–' },
]

const retryTopicOf = (topic: string | undefined): string =>
  topic === undefined ? '–' : topic === '$original' ? 'its original topic' : topic

function Name({ row: { name, settings } }: { readonly row: ServiceRow }) {
  return (
    <>
      <Anchor
        inherit
        renderRoot={(props) => <Link to="/sources/kafka" search={{ service: name }} {...props} />}
      >
        {name === '~unknown' ? 'of no service' : name}
      </Anchor>{' '}
      {settings === null && (
        <Badge variant="light" size="sm" color="yellow" className="badge">
          not listed
        </Badge>
      )}
    </>
  )
}

function Pending({ row: { topics } }: { readonly row: ServiceRow }) {
  if (topics.length === 0) return '–'
  return topics.map(({ queue, topic, pending }) => (
    <Text key={queue} inherit component="div" className="prose">
      {topic === '~unknown' ? 'of no topic' : topic}:{' '}
      <Count
        of={pending}
        filter={{ engine: 'kafka', originalQueue: queue, status: 'Pending' }}
        label={`pending letters of ${queue}`}
      />
    </Text>
  ))
}

const offset = (text: string | null): string =>
  text === null ? 'not known' : BigInt(text).toLocaleString('en-US')

export const PARTITION_COLUMNS: readonly Column<KafkaPartition>[] = [
  { id: 'topic', title: 'Topic', cell: ({ topic }) => topic },
  { id: 'partition', title: 'Partition', numeric: true, width: '6rem', cell: ({ partition }) => partition },
  {
    id: 'committed',
    title: 'Committed',
    numeric: true,
    width: '8rem',
    cell: ({ committed }) => offset(committed),
  },
  { id: 'end', title: 'End', numeric: true, width: '8rem', cell: ({ end }) => offset(end) },
  { id: 'lag', title: 'Lag', numeric: true, width: '6rem', cell: ({ lag }) => offset(lag) },
  { id: 'trouble', title: 'Trouble', cell: ({ trouble }) => trouble ?? 'none' },
]
