/** Kafka: whether dead events are taken in, the services with what waits for them, and the next event of one. */
import { Alert, List, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { countsQuery } from '../api/queries.ts'
import { HistoryLink } from '../history/history-link.tsx'
import { useKeys } from '../keys/keys.tsx'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { Table } from '../kit/table.tsx'
import { useCursor } from '../kit/use-cursor.ts'
import { Time } from '../time/time.tsx'
import { PARTITION_COLUMNS, SERVICE_COLUMNS } from './kafka-columns.tsx'
import { type KafkaIntake, type KafkaOverview, type KafkaPartition, kafkaQuery } from './kafka-queries.ts'
import { ServiceDrawer } from './kafka-service-drawer.tsx'
import { type ServiceRow, servicesWith } from './kafka-services.ts'
import { useRefresh } from './use-refresh.ts'

export function KafkaScreen() {
  const read = useQuery({ ...kafkaQuery, refetchInterval: useRefresh() })
  return (
    <Page
      title="Kafka"
      lead="Dead events out of DLQ topics, kept as letters, and sent to the retry topic of their service when somebody says so."
    >
      <Shown read={read} what="Kafka">
        {(overview) => (overview.enabled ? <Enabled overview={overview} /> : <NotEnabled />)}
      </Shown>
    </Page>
  )
}

function NotEnabled() {
  return (
    <Empty title="Kafka is not enabled.">
      Set <code>kafka.enabled: true</code> in the configuration, with <code>servers</code> and{' '}
      <code>services</code>, and start it again. <code>bartleby kafka check --config bartleby.yaml</code> says
      what is missing. docs/kafka.md begins with an example.
    </Empty>
  )
}

type Overview = Extract<KafkaOverview, { enabled: true }>

function Enabled({ overview }: { readonly overview: Overview }) {
  const counts = useQuery(countsQuery('originalQueue', { engine: 'kafka', status: 'Pending' }))
  return (
    <Stack gap="lg">
      <Intake intake={overview.intake} groupId={overview.groupId} />
      <Shown read={counts} what="pending letters">
        {(found) => <Services rows={servicesWith(overview.services, found)} />}
      </Shown>
      <Partitions of={overview.intake.partitions} />
      <Text size="sm" className="prose">
        What went wrong on the way back:{' '}
        <HistoryLink filter={{ engine: 'kafka', operation: 'kafka.uncertain' }}>
          uncertain publishes
        </HistoryLink>
        ,{' '}
        <HistoryLink filter={{ engine: 'kafka', operation: 'kafka.refused' }}>
          refused by the guard
        </HistoryLink>
        ,{' '}
        <HistoryLink filter={{ engine: 'kafka', operation: 'kafka.publish_failed' }}>
          failed publishes
        </HistoryLink>
        ,{' '}
        <HistoryLink filter={{ engine: 'kafka', operation: 'kafka.gap' }}>offsets that were lost</HistoryLink>
        .
      </Text>
    </Stack>
  )
}

function Services({ rows }: { readonly rows: readonly ServiceRow[] }) {
  const { service } = useSearch({ from: '/sources/kafka' })
  const navigate = useNavigate({ from: '/sources/kafka' })
  const cursor = useCursor(rows.length)
  const open = (name: string | undefined) =>
    void navigate({ search: name === undefined ? {} : { service: name } })
  const openCurrent = () => {
    const row = rows[cursor.index]
    if (row !== undefined) open(row.name)
  }
  useKeys('Kafka', [
    ...cursor.keys,
    { keys: 'o', does: 'open the service', run: openCurrent },
    { keys: 'Enter', does: 'open the service', run: openCurrent },
    {
      keys: 'Escape',
      does: 'close the service',
      run: () => (service === undefined ? undefined : open(undefined)),
    },
  ])
  return (
    <section aria-label="Services">
      <Title order={2} size="h5" mb="xs">
        Services
      </Title>
      <Table
        label="Services"
        columns={SERVICE_COLUMNS}
        rows={rows}
        keyOf={({ name }) => name}
        current={cursor}
      />
      <ServiceDrawer
        name={service ?? null}
        row={rows.find(({ name }) => name === service)}
        close={() => open(undefined)}
      />
    </section>
  )
}

function Partitions({ of }: { readonly of: readonly KafkaPartition[] }) {
  return (
    <section aria-label="Partitions">
      <Title order={2} size="h5" mb="xs">
        Partitions that this server reads
      </Title>
      {of.length === 0 ? (
        <Empty title="This server reads no partition now.">
          Another server of the group may have them all, or the group is still being formed.
        </Empty>
      ) : (
        <Table
          label="Partitions"
          columns={PARTITION_COLUMNS}
          rows={of}
          keyOf={({ topic, partition }) => `${topic} ${partition}`}
        />
      )}
    </section>
  )
}

const STATES: Readonly<Record<KafkaIntake['state'], readonly [title: string, colour: string]>> = {
  starting: ['Intake is starting', 'blue'],
  reading: ['Dead events are taken in', 'teal'],
  degraded: ['Dead events are not taken in as they should', 'red'],
  stopped: ['Intake has stopped', 'red'],
}

function Intake({ intake, groupId }: { readonly intake: KafkaIntake; readonly groupId: string }) {
  const [title, colour] = STATES[intake.state]
  return (
    <Alert role="note" color={colour} title={title}>
      <Text size="sm" component="div">
        Since <Time at={intake.sinceUtc} />, as the group {groupId}.
        {intake.troubles.length > 0 && (
          <>
            <List size="sm" mt={4}>
              {intake.troubles.map((trouble) => (
                <List.Item key={trouble}>{trouble}</List.Item>
              ))}
            </List>
            <code>bartleby kafka check --config bartleby.yaml</code> tries brokers, topics and rights one by
            one.
          </>
        )}
      </Text>
    </Alert>
  )
}
