/** One service of Kafka: its settings, and the event that is next, with what a retry would publish. */
import { Drawer, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FactList, Facts } from '../kit/facts.tsx'
import { Shown } from '../kit/page.tsx'
import { NextEvent } from './kafka-next-event.tsx'
import type { KafkaService } from './kafka-queries.ts'
import { nextLetterQuery } from './kafka-queries.ts'
import type { ServiceRow } from './kafka-services.ts'

export interface ServiceDrawerProps {
  /** null: closed. */
  readonly name: string | null
  /** undefined while it is not known, and for what is no service. */
  readonly row: ServiceRow | undefined
  close(): void
}

export function ServiceDrawer({ name, row, close }: ServiceDrawerProps) {
  return (
    <Drawer
      opened={name !== null}
      onClose={close}
      position="right"
      size="xl"
      title={name === '~unknown' ? 'Events of no service' : `Service ${name ?? ''}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {row === undefined ? (
        <Text size="sm">No service is called so, and no letter is filed under it.</Text>
      ) : (
        <Service key={row.name} row={row} />
      )}
    </Drawer>
  )
}

function Service({ row: { name, settings, topics } }: { readonly row: ServiceRow }) {
  const next = useQuery(
    nextLetterQuery(
      name,
      topics.map(({ queue }) => queue),
    ),
  )
  return (
    <Stack gap="lg">
      <section>
        <Title order={2} size="h5" mb="xs">
          Settings
        </Title>
        {settings === null ? (
          <Text size="sm">
            The configuration lists no such service. Give its events to one that it lists with{' '}
            <code>bartleby kafka reassign</code>, or list it and start the server again.
          </Text>
        ) : (
          <Facts of={factsOf(settings)} />
        )}
      </section>
      <section>
        <Title order={2} size="h5" mb="xs">
          Next event
        </Title>
        <Shown read={next} what="the next event">
          {(letter) =>
            letter === null ? (
              <Text size="sm">Nothing waits: every event of this service is published or discarded.</Text>
            ) : (
              <NextEvent key={letter.rowKey} letter={letter} />
            )
          }
        </Shown>
      </section>
    </Stack>
  )
}

const listed = (names: readonly string[], none: string): string =>
  names.length === 0 ? none : names.join(', ')

const factsOf = (service: KafkaService): FactList => ({
  'DLQ topic': service.dlqTopic,
  'Retry topic':
    service.retryTopic === '$original' ? 'the topic that the event came from' : service.retryTopic,
  Profile: service.profile,
  'Also called': service.aliases.length === 0 ? undefined : service.aliases.join(', '),
  'Original topics': listed(service.originalTopics, 'any'),
  'Types of events': listed(service.types, 'any'),
})
