/** An item of a queue, with its payload. */
import { Code, Paper, Stack } from '@mantine/core'
import { useMemo } from 'react'
import { bytesOf } from '../../../src/client/bytes.ts'
import { type FactList, Facts } from '../kit/facts.tsx'
import { ShownBytes } from '../kit/shown-bytes.tsx'
import { Time } from '../time/time.tsx'
import type { QueueItem } from './queue-queries.ts'

export function QueueItemCard({ item }: { readonly item: QueueItem }) {
  const bytes = useMemo(() => bytesOf(item.payload ?? '', 'base64'), [item.payload])
  return (
    <Paper withBorder p="sm" component="article" aria-label={`Item ${item.id}`}>
      <Stack gap="xs">
        <Facts of={factsOf(item)} />
        <ShownBytes bytes={bytes} label="Payload" />
      </Stack>
    </Paper>
  )
}

const factsOf = (item: QueueItem): FactList => ({
  Id: <Code>{item.id}</Code>,
  Created: <Time at={item.created_at} />,
  Attempts: `${item.attempts ?? 0}${item.max_attempts ? ` of ${item.max_attempts}` : ''}`,
  'Leased until': item.is_leased && item.lease_deadline ? <Time at={item.lease_deadline} /> : undefined,
  Due: item.enqueue_at && isTime(item.enqueue_at) ? <Time at={item.enqueue_at} /> : undefined,
  Kind: item.kind,
  Encoding: item.encoding,
  Reference: item.reference,
  'Died in': item.death?.queue_name && `${item.death.queue_name}: ${item.death.reason ?? ''}`,
})

/** The queue API writes a time that is not set as the year 1. */
const isTime = (text: string): boolean => !text.startsWith('0001-')
