/** Webhooks: channels with their consumers, what each has waiting and dead, who is paused, and what was requeued or purged. */
import { Button, Stack, Title } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { useSession } from '../kit/role.tsx'
import { WebhookRuns } from '../redrives/webhook-runs.tsx'
import { ConsumerTable } from './consumer-table.tsx'
import { PurgeDead, RequeueDead } from './dead-job-acts.tsx'
import { useRefresh } from './use-refresh.ts'
import { type Consumer, consumersQuery } from './webhook-queries.ts'

export function WebhooksScreen() {
  const { sources } = useSession()
  const read = useInfiniteQuery({ ...consumersQuery, refetchInterval: useRefresh() })
  const [asked, setAsked] = useState<{ readonly act: 'requeue' | 'purge'; readonly id: string } | null>(null)
  const consumers = read.data?.pages.flatMap(({ items }) => items) ?? []
  const of = consumers.find(({ id }) => id === asked?.id)
  const close = () => setAsked(null)
  return (
    <Page
      title="Webhooks"
      lead="Messages of a channel, delivered to each of its consumers. A job whose attempts are used up is dead, and a letter."
    >
      <Shown read={read} what="consumers">
        {() =>
          consumers.length === 0 ? (
            <Empty
              title={sources.webhooks ? 'There are no consumers yet.' : 'Webhooks are off on this server.'}
            >
              Register a channel and a consumer with <code>PUT /channel/orders</code> and{' '}
              <code>PUT /channel/orders/consumer/billing</code>, or list them under <code>webhooks.seed</code>{' '}
              in the configuration. docs/webhooks.md begins with an example.
            </Empty>
          ) : (
            <Stack gap="lg">
              {channelsOf(consumers).map(([channelId, ofChannel]) => (
                <section key={channelId} aria-label={`Channel ${channelId}`}>
                  <Title order={2} size="h5" mb="xs">
                    {channelTitle(ofChannel, channelId)}
                  </Title>
                  <ConsumerTable
                    channel={channelId}
                    consumers={ofChannel}
                    requeue={({ id }) => setAsked({ act: 'requeue', id })}
                    purge={({ id }) => setAsked({ act: 'purge', id })}
                  />
                </section>
              ))}
              {read.hasNextPage && (
                <Button
                  variant="default"
                  loading={read.isFetchingNextPage}
                  onClick={() => void read.fetchNextPage()}
                >
                  Show more consumers
                </Button>
              )}
            </Stack>
          )
        }
      </Shown>
      <WebhookRuns />
      <RequeueDead consumer={asked?.act === 'requeue' ? of : undefined} close={close} />
      <PurgeDead consumer={asked?.act === 'purge' ? of : undefined} close={close} />
    </Page>
  )
}

/** In the order in which they come. */
function channelsOf(consumers: readonly Consumer[]): readonly (readonly [string, readonly Consumer[]])[] {
  return [...Map.groupBy(consumers, ({ channelId }) => channelId)]
}

function channelTitle([first]: readonly Consumer[], channelId: string): string {
  return first === undefined || first.channelName === channelId
    ? `Channel ${channelId}`
    : `Channel ${first.channelName} (${channelId})`
}
