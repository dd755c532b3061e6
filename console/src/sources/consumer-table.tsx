/** The consumers of a channel: their jobs by state, how many succeed, whether deliveries are paused, and what can be done. */
import { Badge, Group, Text, Tooltip } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { reasonOf } from '../api/call.ts'
import { ActButton } from '../kit/act-button.tsx'
import { Count } from '../kit/links.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { useToasts } from '../toasts/toasts.tsx'
import { SuccessBar } from './success-bar.tsx'
import { actOn, type Consumer, deadLettersOf } from './webhook-queries.ts'

export interface ConsumerTableProps {
  readonly channel: string
  readonly consumers: readonly Consumer[]
  requeue(consumer: Consumer): void
  purge(consumer: Consumer): void
}

export function ConsumerTable({ channel, consumers, requeue, purge }: ConsumerTableProps) {
  const columns: readonly Column<Consumer>[] = [
    ...COLUMNS,
    {
      id: 'acts',
      title: 'Dead jobs',
      narrow: 'act',
      width: '13rem',
      cell: (consumer) => (
        <Group gap="xs" wrap="nowrap">
          <ActButton
            needs="operator"
            size="compact-xs"
            variant="default"
            refusal={refusalFor(consumer)}
            onClick={() => requeue(consumer)}
          >
            Requeue…
          </ActButton>
          <ActButton
            needs="admin"
            size="compact-xs"
            variant="default"
            refusal={refusalFor(consumer)}
            onClick={() => purge(consumer)}
          >
            Purge…
          </ActButton>
        </Group>
      ),
    },
  ]
  return <Table label={`Consumers of ${channel}`} columns={columns} rows={consumers} keyOf={({ id }) => id} />
}

const refusalFor = ({ dead }: Consumer): string | null => (dead === 0 ? 'It has no dead jobs.' : null)

/** Of the jobs that have ended. */
function shareOf({ delivered, dead }: Consumer): number | null {
  return delivered + dead === 0 ? null : delivered / (delivered + dead)
}

const COLUMNS: readonly Column<Consumer>[] = [
  { id: 'consumer', title: 'Consumer', cell: (consumer) => <Name consumer={consumer} /> },
  { id: 'state', title: 'Deliveries', width: '13rem', cell: (consumer) => <State consumer={consumer} /> },
  { id: 'queued', title: 'Queued', numeric: true, width: '5rem', cell: ({ queued }) => grouped(queued) },
  {
    id: 'flight',
    title: 'In flight',
    numeric: true,
    width: '5rem',
    cell: ({ inFlight }) => grouped(inFlight),
  },
  {
    id: 'delivered',
    title: 'Delivered',
    numeric: true,
    width: '6rem',
    cell: ({ delivered }) => grouped(delivered),
  },
  {
    id: 'success',
    title: 'Success',
    numeric: true,
    width: '10rem',
    cell: (consumer) => (
      <SuccessBar
        share={shareOf(consumer)}
        of={`of ${grouped(consumer.delivered + consumer.dead)} jobs that have ended`}
      />
    ),
  },
  {
    id: 'dead',
    title: 'Dead',
    numeric: true,
    width: '5rem',
    cell: (consumer) => (
      <Count
        of={consumer.dead}
        filter={deadLettersOf(consumer)}
        label={`dead jobs of ${consumer.consumerId} on ${consumer.channelId}`}
      />
    ),
  },
  {
    id: 'oldest',
    title: 'Oldest dead',
    width: '7rem',
    cell: ({ oldestDeadAtUtc }) => <Time at={oldestDeadAtUtc} />,
  },
]

function Name({ consumer }: { readonly consumer: Consumer }) {
  const { consumerId, consumerName, type, callbackUrl, signed } = consumer
  return (
    <>
      <Group gap={6}>
        <strong>{consumerName}</strong>
        {consumerName !== consumerId && <span>({consumerId})</span>}
        <Badge variant="light" size="sm" className="badge" color="gray">
          {type}
        </Badge>
        {signed && (
          <Badge variant="light" size="sm" className="badge" color="indigo">
            signed
          </Badge>
        )}
      </Group>
      {type === 'push' && (
        <Text size="xs" c="var(--quiet)">
          {callbackUrl}
        </Text>
      )}
      <Limits consumer={consumer} />
    </>
  )
}

function Limits({ consumer: { mostAtOnce, mostPerSecond } }: { readonly consumer: Consumer }) {
  const limits = [
    ...(mostAtOnce === null ? [] : [`${grouped(mostAtOnce)} at once`]),
    ...(mostPerSecond === null ? [] : [`${mostPerSecond} a second`]),
  ]
  if (limits.length === 0) return null
  return (
    <Text size="xs" c="var(--quiet)">
      At most {limits.join(', ')}
    </Text>
  )
}

const WORDS: Readonly<Record<Consumer['state'], readonly [word: string, colour: string, means: string]>> = {
  delivering: ['Delivering', 'teal', 'Jobs are delivered as they come.'],
  paused: ['Paused', 'red', 'Nothing but failures came back. Jobs wait, and use up no attempts.'],
  probing: ['Probing', 'yellow', 'The pause is over; one job at a time shows whether it works again.'],
}

function State({ consumer }: { readonly consumer: Consumer }) {
  const { state, pausedSinceUtc, pausedUntilUtc, pauseReason } = consumer
  const [word, colour, means] = WORDS[state]
  return (
    <>
      <Group gap="xs">
        <Tooltip label={means} multiline w="16rem">
          <Badge variant="light" size="sm" className="badge" color={colour} miw="max-content">
            {word}
          </Badge>
        </Tooltip>
        {state !== 'delivering' && <Resume consumer={consumer} />}
      </Group>
      {pausedSinceUtc !== null && (
        <Text size="xs" c="var(--quiet)" component="div">
          Since <Time at={pausedSinceUtc} />, next try <Time at={pausedUntilUtc} />.{' '}
          <Text span inherit title={pauseReason ?? undefined} lineClamp={3}>
            {sentence(pauseReason ?? '')}
          </Text>
        </Text>
      )}
    </>
  )
}

const sentence = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

function Resume({ consumer }: { readonly consumer: Consumer }) {
  const client = useQueryClient()
  const toasts = useToasts()
  const resume = useMutation({
    mutationFn: () => actOn<{ readonly resumed: boolean }>(consumer, 'resume'),
    onSuccess: ({ resumed }) => {
      toasts.show({
        title: resumed
          ? `${consumer.consumerId} gets its jobs again`
          : `${consumer.consumerId} was not paused any more`,
      })
      return client.invalidateQueries({ queryKey: ['webhooks'] })
    },
    onError: (error) =>
      toasts.show({ title: 'The pause was not ended', message: reasonOf(error), tone: 'failed' }),
  })
  return (
    <ActButton
      needs="operator"
      size="compact-xs"
      variant="default"
      loading={resume.isPending}
      onClick={() => resume.mutate()}
    >
      Resume
    </ActButton>
  )
}
