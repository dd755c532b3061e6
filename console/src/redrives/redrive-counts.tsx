/** Where letters of a redrive go, and what kept others. */
import { Anchor, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { DONE_WORDS } from '../acts/act.ts'
import type { RedriveDestination, RedriveDetail } from '../api/redrive-types.ts'
import { isSending } from '../api/redrive-types.ts'
import { Panel } from '../kit/page.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { visible } from '../kit/visible.ts'
import { QueueLink } from '../sources/queue-link.tsx'
import { grouped } from '../time/format.ts'
import { capitalised, outcomeWord, reasonWords } from './redrive-words.ts'

type ExceptionCount = RedriveDetail['exceptions'][number]

const numberColumn = (
  id: 'planned' | 'sent' | 'skipped' | 'failed' | 'remaining',
  title: string,
): Column<RedriveDestination> => ({
  id,
  title,
  numeric: true,
  width: '6.5rem',
  cell: (destination) => grouped(destination[id]),
})

/** Each destination with numbers that add up. */
export function Destinations({ redrive: { action, destinations } }: { readonly redrive: RedriveDetail }) {
  const columns: readonly Column<RedriveDestination>[] = [
    {
      id: 'name',
      title: isSending(action) ? 'To' : 'From',
      cell: ({ name, source }) => (
        <span className="wrapped">
          <Place source={source} name={name} />{' '}
          <Text span size="xs" c="var(--quiet)">
            {source}
          </Text>
        </span>
      ),
    },
    numberColumn('planned', 'Planned'),
    numberColumn('sent', capitalised(DONE_WORDS[action])),
    numberColumn('skipped', 'Skipped'),
    numberColumn('failed', 'Failed'),
    numberColumn('remaining', 'Left'),
  ]
  const title = isSending(action) ? 'Destinations' : 'Origins'
  return (
    <Panel title={title}>
      {destinations.length === 0 ? (
        <Text size="sm">None.</Text>
      ) : (
        <Table
          label={title}
          columns={columns}
          rows={destinations}
          keyOf={({ source, name }) => `${source} ${name}`}
        />
      )}
    </Panel>
  )
}

/** Sources whose letters go to queues. */
const IN_QUEUES = ['queues', 'engines', 'http']

function Place({ source, name }: Pick<RedriveDestination, 'source' | 'name'>) {
  if (name === '') return '–'
  return IN_QUEUES.includes(source) ? <QueueLink name={name} /> : visible(name)
}

/** Why letters were skipped or failed. */
export function Exceptions({ redrive: { id, action, exceptions } }: { readonly redrive: RedriveDetail }) {
  const columns: readonly Column<ExceptionCount>[] = [
    { id: 'outcome', title: 'Outcome', width: '6rem', cell: ({ outcome }) => outcomeWord(action, outcome) },
    { id: 'reason', title: 'Why', cell: ({ reason }) => reasonWords(reason) },
    {
      id: 'letters',
      title: 'Letters',
      numeric: true,
      width: '5rem',
      cell: ({ outcome, letters }) => (
        <Anchor
          inherit
          renderRoot={(props) => <Link to="/redrives/$id" params={{ id }} search={{ outcome }} {...props} />}
        >
          {grouped(letters)}
        </Anchor>
      ),
    },
  ]
  return (
    <Panel title={`Not ${DONE_WORDS[action]}`}>
      {exceptions.length === 0 ? (
        <Text size="sm">None: no letter was skipped or failed.</Text>
      ) : (
        <Table
          label="Exceptions"
          columns={columns}
          rows={exceptions}
          keyOf={({ outcome, reason }) => `${outcome} ${reason}`}
        />
      )}
    </Panel>
  )
}
