/** What a server tells about dead jobs: by its status endpoint, and by the gauge that is scraped. */
import type { WebhookClient } from './client.ts'

/** By `<channel>/<consumer>`. */
export type Told = Readonly<Record<string, number>>

interface DeadStatus {
  readonly consumers: readonly {
    readonly channelId: string
    readonly channelName: string
    readonly consumerId: string
    readonly consumerName: string
    readonly deadCount: number
  }[]
}

export const deadStatus = async (client: WebhookClient): Promise<DeadStatus> =>
  (await client.get('/dlq-status')).json<DeadStatus>()

const SAMPLE = /^dead_job_count\{channel="(.*)",consumer="(.*)"\} (\S+)$/gm

/** The samples of the gauge in a page of metrics. Labels of tests need no escaping. */
export function gaugeIn(metrics: string): Told {
  const samples = [...metrics.matchAll(SAMPLE)]
  return Object.fromEntries(
    samples.map(([, channel, consumer, value]) => [`${channel}/${consumer}`, Number(value)]),
  )
}

/** What the two say, in turn. */
export async function told(client: WebhookClient): Promise<{ readonly status: Told; readonly gauge: Told }> {
  const [{ consumers }, metrics] = await Promise.all([deadStatus(client), client.get('/metrics')])
  return {
    status: Object.fromEntries(
      consumers.map(({ channelId, consumerId, deadCount }) => [`${channelId}/${consumerId}`, deadCount]),
    ),
    gauge: gaugeIn(metrics.text),
  }
}
