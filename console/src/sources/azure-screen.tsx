/** Azure: how far tables and queues of the account were read, what is not yet written to them, and what nobody knows. */
import { Alert, List, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { azureQuery, countsQuery } from '../api/queries.ts'
import type { AzureOverview, AzureReading } from '../api/types.ts'
import { HistoryLink } from '../history/history-link.tsx'
import { useKeys } from '../keys/keys.tsx'
import { Facts } from '../kit/facts.tsx'
import { Count } from '../kit/links.tsx'
import { Empty, Page, Panel, Shown } from '../kit/page.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { grouped } from '../time/format.ts'
import { FullTime, Time } from '../time/time.tsx'
import { useRefresh } from './use-refresh.ts'

export function AzureScreen() {
  const read = useQuery({ ...azureQuery, refetchInterval: useRefresh() })
  return (
    <Page
      title="Azure tables"
      lead="Dead messages of engines whose unified tables lie in a storage account, kept as letters, and sent back to their Storage Queues when somebody says so."
    >
      <Shown read={read} what="the storage account">
        {(overview) => (overview.configured ? <Configured overview={overview} /> : <NotConfigured />)}
      </Shown>
    </Page>
  )
}

function NotConfigured() {
  return (
    <Empty title="This server has no storage account.">
      Set <code>engines.tables.storageAccountName</code> in the configuration, and start it again.{' '}
      <code>bartleby azure check --config bartleby.yaml</code> says what may be done with the account.
      docs/azure.md begins with an example.
    </Empty>
  )
}

function Configured({ overview }: { readonly overview: AzureOverview }) {
  const { readings = [], uncertain = 0 } = overview
  return (
    <Stack gap="lg">
      <Standing overview={overview} />
      {uncertain > 0 && <Uncertain letters={uncertain} />}
      <Engines />
      <Panel title="Tables and queues">
        <Table
          label="Tables and queues"
          columns={READING_COLUMNS}
          rows={readings}
          keyOf={({ name }) => name}
        />
      </Panel>
      <Text size="sm" className="prose">
        What happened on the way back:{' '}
        <HistoryLink filter={{ operation: 'send-uncertain' }}>uncertain sends</HistoryLink>,{' '}
        <HistoryLink filter={{ operation: 'send-failed' }}>failed sends</HistoryLink>,{' '}
        <HistoryLink filter={{ operation: 'change-overruled' }}>changes that were overruled</HistoryLink>.
      </Text>
    </Stack>
  )
}

function Standing({ overview }: { readonly overview: AzureOverview }) {
  const { account, unwritten = 0, unwrittenSinceUtc = null, uncertain = 0, troubles = [] } = overview
  const isWell = troubles.length === 0
  return (
    <Alert
      role="note"
      color={isWell ? 'teal' : 'red'}
      title={isWell ? 'The account answers' : 'The account does not answer as it should'}
    >
      <Facts
        of={{
          Account: account,
          'Not yet written':
            unwritten === 0 ? 'nothing' : <Unwritten acts={unwritten} since={unwrittenSinceUtc} />,
          'Nobody knows whether sent': uncertain === 0 ? 'no letter' : counted(uncertain, 'letter'),
        }}
      />
      {!isWell && (
        <>
          <List size="sm" mt={4}>
            {troubles.map((trouble) => (
              <List.Item key={trouble}>{trouble}</List.Item>
            ))}
          </List>
          <code>bartleby azure check --config bartleby.yaml</code> tries tables, queues and rights one by one.
        </>
      )}
    </Alert>
  )
}

function Unwritten({ acts, since }: { readonly acts: number; readonly since: string | null }) {
  return (
    <>
      {counted(acts, 'act')}
      {since !== null && (
        <>
          , the oldest of <FullTime at={since} />
        </>
      )}
    </>
  )
}

/** The server counts no further. */
const MOST_COUNTED = 1_000

const counted = (many: number, what: string): string =>
  `${grouped(many)}${many < MOST_COUNTED ? '' : ' or more'} ${what}${many === 1 ? '' : 's'}`

function Uncertain({ letters }: { readonly letters: number }) {
  return (
    <Alert role="note" color="yellow" title={`${counted(letters, 'letter')} may be on the way, or not`}>
      <Text size="sm" className="prose">
        The answer of a queue was lost, or a server died while it sent. Nothing is sent twice: look into the
        queue, then say what is so with <code>bartleby azure settle ENGINE ROWKEY --arrived</code> or{' '}
        <code>--lost</code>. Each stands in{' '}
        <HistoryLink filter={{ operation: 'send-uncertain' }}>history</HistoryLink>, and its letter says so.
      </Text>
    </Alert>
  )
}

function Engines() {
  const read = useQuery(countsQuery('engine', { source: 'azure', status: 'Pending' }))
  const rows = (read.data?.items ?? []).map(({ engine, count }) => ({ engine: engine ?? '', count }))
  const cursor = useCursor(rows.length)
  useKeys('Azure tables', cursor.keys)
  return (
    <Panel title="Engines">
      <Shown read={read} what="pending letters">
        {() =>
          rows.length === 0 ? (
            <Empty title="No letter of this account is pending." />
          ) : (
            <Table
              label="Engines"
              columns={ENGINE_COLUMNS}
              rows={rows}
              keyOf={({ engine }) => engine}
              current={cursor}
            />
          )
        }
      </Shown>
    </Panel>
  )
}

interface EngineRow {
  readonly engine: string
  readonly count: number
}

const ENGINE_COLUMNS: readonly Column<EngineRow>[] = [
  { id: 'engine', title: 'Engine', cell: ({ engine }) => <strong>{engine}</strong> },
  {
    id: 'pending',
    title: 'Pending',
    numeric: true,
    width: '6rem',
    cell: ({ engine, count }) => (
      <Count
        of={count}
        filter={{ source: 'azure', engine, status: 'Pending' }}
        label={`pending letters of ${engine}`}
      />
    ),
  },
]

const READING_COLUMNS: readonly Column<AzureReading>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => <strong>{name}</strong> },
  {
    id: 'state',
    title: 'In the account',
    width: '9rem',
    cell: ({ exists }) => (exists ? 'there' : 'does not exist'),
  },
  { id: 'last', title: 'Last read', width: '9rem', cell: ({ readAtUtc }) => <Time at={readAtUtc} /> },
  { id: 'to', title: 'Newest row', width: '9rem', cell: ({ readToUtc }) => <Time at={readToUtc} /> },
]
