/** Queues: how deep they are, the letters that came from them, and what lies in one of them. */
import { Badge, Tooltip } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { queuesQuery } from '../api/queries.ts'
import type { QueueOverview } from '../api/types.ts'
import { useKeys } from '../keys/keys.tsx'
import { ActButton } from '../kit/act-button.tsx'
import { Count } from '../kit/links.tsx'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { PageTurner, usePages } from '../kit/page-turner.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { CreateQueue } from './create-queue.tsx'
import { QueueDrawer } from './queue-drawer.tsx'
import { QueueLink } from './queue-link.tsx'
import { useRefresh } from './use-refresh.ts'

const COMMAND = 'bartleby queues create orders --dead-queue orders-dead --max-attempts 3'

export function QueuesScreen() {
  const { queue } = useSearch({ from: '/sources/queues' })
  const navigate = useNavigate({ from: '/sources/queues' })
  const pages = usePages('queues')
  const read = useQuery({ ...queuesQuery(pages.token), refetchInterval: useRefresh() })
  const rows = read.data?.items ?? []
  const cursor = useCursor(rows.length)
  const [isCreating, creating] = useDisclosure(false)
  const inspect = (name: string | undefined) =>
    void navigate({ search: name === undefined ? {} : { queue: name } })
  const openCurrent = () => {
    const row = rows[cursor.index]
    if (row !== undefined) inspect(row.name)
  }
  useKeys('Queues', [
    ...cursor.keys,
    { keys: 'o', does: 'inspect the queue', run: openCurrent },
    { keys: 'Enter', does: 'inspect the queue', run: openCurrent },
    {
      keys: 'Escape',
      does: 'close the queue',
      run: () => (queue === undefined ? undefined : inspect(undefined)),
    },
  ])
  return (
    <Page
      title="Queues"
      lead="Waiting, leased and dead. Dead letters came from this queue; In dead queue counts the letters that a dead queue holds."
      beside={
        <ActButton needs="admin" onClick={creating.open}>
          Create a queue…
        </ActButton>
      }
    >
      <Shown read={read} what="queues">
        {({ items, continuationToken }) =>
          items.length === 0 && pages.number === 1 ? (
            <Empty title="No queues yet.">
              Create one here, or with <code>{COMMAND}</code>. What fails becomes a letter; with a dead queue,
              consumers can lease it there too.
            </Empty>
          ) : (
            <>
              <Table
                label="Queues"
                columns={columnsFor(items)}
                rows={items}
                keyOf={({ name }) => name}
                current={cursor}
              />
              <PageTurner pages={pages} next={continuationToken} rows={items.length} />
            </>
          )
        }
      </Shown>
      <CreateQueue
        isOpen={isCreating}
        close={creating.close}
        known={rows.map(({ name }) => name)}
        created={inspect}
      />
      <QueueDrawer
        queue={queue ?? null}
        overview={rows.find(({ name }) => name === queue)}
        close={() => inspect(undefined)}
      />
    </Page>
  )
}

const columnsFor = (all: readonly QueueOverview[]): readonly Column<QueueOverview>[] => [
  { id: 'name', title: 'Name', cell: (queue) => <Name queue={queue} /> },
  { id: 'ready', title: 'Ready', numeric: true, width: '6rem', cell: ({ ready }) => grouped(ready) },
  { id: 'leased', title: 'Leased', numeric: true, width: '6rem', cell: ({ leased }) => grouped(leased) },
  {
    id: 'scheduled',
    title: 'Scheduled',
    numeric: true,
    width: '6rem',
    cell: (queue) => grouped(queue.scheduled),
  },
  {
    id: 'letters',
    title: 'Dead letters',
    numeric: true,
    width: '6rem',
    cell: ({ name, letters }) => (
      <Count
        of={letters}
        filter={{ originalQueue: name, status: 'Pending' }}
        label={`pending letters from ${name}`}
      />
    ),
  },
  {
    id: 'dead',
    title: 'In dead queue',
    numeric: true,
    width: '9rem',
    cell: (queue) => <Lying queue={queue} all={all} />,
  },
  { id: 'oldest', title: 'Oldest', width: '8rem', cell: ({ oldestAtUtc }) => <Time at={oldestAtUtc} /> },
  {
    id: 'attempts',
    title: 'Attempts',
    numeric: true,
    width: '6rem',
    cell: ({ maxAttempts }) => (maxAttempts === 0 ? 'no limit' : grouped(maxAttempts)),
  },
  {
    id: 'deadQueue',
    title: 'Dead queue',
    cell: ({ deadQueue }) => (deadQueue === null ? '–' : <QueueLink name={deadQueue} />),
  },
]

function Name({ queue: { name, held } }: { readonly queue: QueueOverview }) {
  return (
    <>
      <QueueLink name={name} />{' '}
      {held > 0 && (
        <Tooltip label="They died, and the dead queue they belong in does not exist. Create it, and they move there.">
          <Badge variant="light" color="red" size="sm" className="badge">
            {grouped(held)} held
          </Badge>
        </Tooltip>
      )}
    </>
  )
}

/** Letters cannot be asked for by their dead queue; where all of them come from one queue, that one is asked for. */
function Lying({
  queue: { name, dead },
  all,
}: {
  readonly queue: QueueOverview
  readonly all: readonly QueueOverview[]
}) {
  const from = all.filter(({ deadQueue }) => deadQueue === name)
  const [only] = from
  if (dead === 0 || only === undefined || from.length > 1) return grouped(dead)
  return (
    <Count
      of={dead}
      filter={{ originalQueue: only.name, status: 'Pending' }}
      label={`letters lie in ${name}; they came from ${only.name}`}
    />
  )
}
