/** Where things are on the webhook API, lists of that, and payloads and addresses as it shows them. */

import { isUtf8 } from 'node:buffer'
import type { Answer } from '../../../api/exact-answer.ts'
import { TEXT } from '../../../api/shapes.ts'
import type { Page } from '../registry/pages.ts'
import { withoutCredentials } from '../registry/texts.ts'
import { json } from './reply.ts'

/** A page of addresses. `Links` is always there, and always null. */
export const listResult = <Item>(
  path: string,
  page: Page<Item>,
  urlOf: (item: Item) => string,
  statuses?: readonly number[],
): Answer => json({ Result: page.items.map(urlOf), Pages: pageLinks(path, page, statuses), Links: null })

/**
 * An address as everybody may see it: credentials and queries, which often are credentials too, are shown only with the consumer
 * that they belong to.
 */
export const endpoint = (callbackUrl: string): string =>
  withoutCredentials(callbackUrl).replace(/[?#].*$/s, '')

/** Metadata headers by their names. */
export const HEADERS = { type: 'object', additionalProperties: TEXT } as const

const bytesOf = (payload: Uint8Array): Buffer =>
  Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)

/** A payload as text. */
export const payloadText = (payload: Uint8Array): string => bytesOf(payload).toString()

/** What is no text is added as it is. */
export const inBase64 = (payload: Uint8Array): { readonly PayloadBase64?: string } =>
  isUtf8(payload) ? {} : { PayloadBase64: bytesOf(payload).toString('base64') }

/** Where things are. Ids may hold anything: each is one segment of a path, percent-encoded. */
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
