/** The messages of an outbox, by the filters of the API; payloads stay where they are. */
import { Badge, Button, Group, NativeSelect, Pagination, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useEffect, useState } from 'react'
import { useKeys } from '../keys/keys.tsx'
import { LettersLink } from '../kit/links.tsx'
import { Empty, Shown } from '../kit/page.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import {
  type ListedMessage,
  MESSAGE_STATUSES,
  type MessagePage,
  type MessageStatus,
  type MessagesAsked,
  outboxMessagesQuery,
} from './outbox-queries.ts'
import { useRefresh } from './use-refresh.ts'

export function OutboxMessages({ outboxes }: { readonly outboxes: readonly string[] }) {
  const asked = useSearch({ from: '/sources/outbox' })
  const navigate = useNavigate({ from: '/sources/outbox' })
  const read = useQuery({ ...outboxMessagesQuery(asked), refetchInterval: useRefresh() })
  const cursor = useCursor(read.data?.items.length ?? 0)
  useKeys('Messages', cursor.keys)
  const ask = (changed: MessagesAsked) => void navigate({ search: changed, resetScroll: false })
  return (
    <>
      <Filters asked={asked} outboxes={outboxes} ask={ask} />
      <Shown read={read} what="messages">
        {(page) => (
          <>
            {page.items.length === 0 ? (
              <Empty title="No message matches.">
                {asked.status === 'pending' || asked.status === 'failed'
                  ? 'Everything is delivered, or dead.'
                  : 'Leave a filter out. Messages that are delivered are removed when their retention is over.'}
              </Empty>
            ) : (
              <Table
                label="Messages"
                columns={columnsFor(page.outbox ?? '')}
                rows={page.items}
                keyOf={({ id }) => id}
                current={cursor}
              />
            )}
            <Turner page={page} turn={(number) => ask({ ...asked, page: String(number) })} />
          </>
        )}
      </Shown>
    </>
  )
}

interface FiltersProps {
  readonly asked: MessagesAsked
  readonly outboxes: readonly string[]
  ask(asked: MessagesAsked): void
}

function Filters({ asked, outboxes, ask }: FiltersProps) {
  const { outbox = outboxes[0] ?? '', status = '', eventType = '', tenantId = '' } = asked
  const [draft, setDraft] = useState({ eventType, tenantId })
  useEffect(() => setDraft({ eventType, tenantId }), [eventType, tenantId])
  const apply = (changed: MessagesAsked) => {
    // Another list begins at its first page.
    const all = { outbox, status, ...draft, ...changed }
    ask(Object.fromEntries(Object.entries(all).filter(([, value]) => value.trim() !== '')))
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    apply({})
  }
  return (
    <form onSubmit={submit} aria-label="Filters of messages">
      <Group align="flex-end" gap="sm">
        <NativeSelect
          size="xs"
          label="Outbox"
          data={[...outboxes]}
          value={outbox}
          onChange={(event) => apply({ outbox: event.currentTarget.value })}
        />
        <NativeSelect
          size="xs"
          label="Status"
          data={[{ value: '', label: 'any' }, ...MESSAGE_STATUSES]}
          value={status}
          onChange={(event) => apply({ status: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          label="Event type"
          value={draft.eventType}
          onChange={(event) => setDraft({ ...draft, eventType: event.currentTarget.value })}
        />
        <TextInput
          size="xs"
          label="Tenant"
          value={draft.tenantId}
          onChange={(event) => setDraft({ ...draft, tenantId: event.currentTarget.value })}
        />
        <Button size="xs" type="submit">
          Apply
        </Button>
      </Group>
    </form>
  )
}

const COLOURS: Readonly<Record<MessageStatus, string>> = {
  pending: 'blue',
  failed: 'orange',
  processed: 'teal',
  dead: 'red',
}

const columnsFor = (outbox: string): readonly Column<ListedMessage>[] => [
  { id: 'id', title: 'Id', width: '6rem', cell: ({ id }) => id },
  {
    id: 'status',
    title: 'Status',
    width: '9rem',
    cell: (message) => <Standing message={message} outbox={outbox} />,
  },
  { id: 'type', title: 'Event type', narrow: 'title', width: '12rem', cell: ({ eventType }) => eventType },
  { id: 'tenant', title: 'Tenant', width: '9rem', cell: ({ tenantId }) => tenantId || '–' },
  { id: 'created', title: 'Created', width: '7rem', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    id: 'failures',
    title: 'Failures',
    numeric: true,
    width: '5rem',
    cell: ({ retryCount }) => grouped(retryCount),
  },
  {
    id: 'next',
    title: 'Ended, or next',
    width: '8rem',
    cell: ({ processedAt, deadAt, nextAttemptAt }) => <Time at={processedAt ?? deadAt ?? nextAttemptAt} />,
  },
  {
    id: 'error',
    title: 'Last error',
    narrow: 'text',
    oneLine: true,
    cell: ({ lastErrorSnippet }) => <Snippet text={lastErrorSnippet} />,
  },
]

function Standing({ message, outbox }: { readonly message: ListedMessage; readonly outbox: string }) {
  const { status, idempotencyKey } = message
  const badge = (
    <Badge variant="light" size="sm" className="badge" color={COLOURS[status]}>
      {status}
    </Badge>
  )
  if (status !== 'dead' || idempotencyKey === null) return badge
  // Its letter has the key among its headers, which are searched.
  return (
    <Group gap={6} wrap="nowrap">
      {badge}
      <LettersLink
        filter={{ engine: 'outbox', originalQueue: outbox, q: idempotencyKey }}
        label={`letter of message ${message.id}`}
      >
        letter
      </LettersLink>
    </Group>
  )
}

const Snippet = ({ text }: { readonly text: string | null }) => (
  <span title={text ?? undefined}>{text ?? '–'}</span>
)

function Turner({ page, turn }: { readonly page: MessagePage; turn(number: number): void }) {
  const { total, totalIsCapped, pageSize } = page
  const last = Math.max(1, Math.ceil(total / pageSize))
  return (
    <Group justify="space-between">
      <Text size="sm" c="var(--quiet)">
        {totalIsCapped
          ? `More than ${grouped(total)} messages; the first of them can be seen`
          : `${grouped(total)} messages`}
      </Text>
      {last > 1 && (
        <Pagination
          size="sm"
          total={last}
          value={page.page}
          onChange={turn}
          aria-label="Pages of messages"
          getControlProps={(control) => ({ 'aria-label': `${control} page` })}
          getItemProps={(number) => ({ 'aria-label': `Page ${number}` })}
        />
      )}
    </Group>
  )
}
