/** Outboxes: what waits in each, how old it is, how deliveries go, and the messages themselves. */
import { SimpleGrid, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { OutboxCard } from './outbox-card.tsx'
import { OutboxMessages } from './outbox-messages.tsx'
import { outboxHealthQuery, outboxMetricsQuery } from './outbox-queries.ts'
import { useRefresh } from './use-refresh.ts'

export function OutboxScreen() {
  const refetchInterval = useRefresh()
  const metrics = useQuery({ ...outboxMetricsQuery, refetchInterval })
  const health = useQuery({ ...outboxHealthQuery, refetchInterval })
  return (
    <Page
      title="Outbox"
      lead="Messages that applications commit together with their changes, and a dispatcher delivers. What cannot be delivered becomes a letter."
    >
      <Shown read={metrics} what="outboxes">
        {({ outboxes }) =>
          outboxes.length === 0 ? (
            <Empty title="This server looks after no outbox.">
              List those that it shall deliver or watch over under <code>outbox</code> in the configuration,
              and start it again. docs/outbox.md has an example.
            </Empty>
          ) : (
            <>
              <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }}>
                {outboxes.map((each) => (
                  <OutboxCard
                    key={each.outbox}
                    metrics={each}
                    health={health.data?.outboxes.find(({ outbox }) => outbox === each.outbox)}
                  />
                ))}
              </SimpleGrid>
              <Title order={2} size="h4">
                Messages
              </Title>
              <OutboxMessages outboxes={outboxes.map(({ outbox }) => outbox)} />
            </>
          )
        }
      </Shown>
    </Page>
  )
}
