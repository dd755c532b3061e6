/** Where things are. Ids may hold anything: each is one segment of a path, percent-encoded. */
import type { Page } from '../pages.ts'

const segment = encodeURIComponent

export const producerUrl = (producerId: string) => `/producer/${segment(producerId)}`
export const channelUrl = (channelId: string) => `/channel/${segment(channelId)}`
export const messageUrl = (channelId: string, messageId: string) =>
  `${channelUrl(channelId)}/message/${segment(messageId)}`
export const scheduledUrl = (channelId: string, messageId: string) =>
  `${channelUrl(channelId)}/scheduled-message/${segment(messageId)}`
export const consumerUrl = (channelId: string, consumerId: string) =>
  `${channelUrl(channelId)}/consumer/${segment(consumerId)}`
export const deadJobsUrl = (channelId: string, consumerId: string) =>
  `${consumerUrl(channelId, consumerId)}/dlq`
export const requeueUrl = (channelId: string, consumerId: string, jobId: string) =>
  `${consumerUrl(channelId, consumerId)}/job/${segment(jobId)}/requeue-dead-job`

/** The pages around this one; both when it holds anything, so that clients go on until they meet an empty one. */
export function pageLinks(
  path: string,
  { first, last }: Page<unknown>,
  statuses: readonly number[] = [],
): Readonly<Record<string, string>> {
  if (first === null || last === null) return {}
  const rest = statuses.map((status) => `&status=${status}`).join('')
  return {
    next: `${path}?next=${segment(last)}${rest}`,
    previous: `${path}?previous=${segment(first)}${rest}`,
  }
}
