/** Paths, lists, payloads and addresses as the webhook API shows them. */

import { isUtf8 } from 'node:buffer'
import type { Answer } from '../../../api/exact-answer.ts'
import { TEXT } from '../../../api/shapes.ts'
import type { Page } from '../registry/pages.ts'
import { withoutCredentials } from '../registry/texts.ts'
import { json } from './reply.ts'

/** `Links` is always there, and always null. */
export const listResult = <Item>(
  path: string,
  page: Page<Item>,
  urlOf: (item: Item) => string,
  statuses?: readonly number[],
): Answer => json({ Result: page.items.map(urlOf), Pages: pageLinks(path, page, statuses), Links: null })

/** Without credentials and query, which often is one too: these are shown with their consumer alone. */
export const endpoint = (callbackUrl: string): string =>
  withoutCredentials(callbackUrl).replace(/[?#].*$/s, '')

export const HEADERS = { type: 'object', additionalProperties: TEXT } as const

const bytesOf = (payload: Uint8Array): Buffer =>
  Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)

export const payloadText = (payload: Uint8Array): string => bytesOf(payload).toString()

/** Added when the payload is no text. */
export const inBase64 = (payload: Uint8Array): { readonly PayloadBase64?: string } =>
  isUtf8(payload) ? {} : { PayloadBase64: bytesOf(payload).toString('base64') }

/** Ids may hold anything: each is one segment of a path, percent-encoded. */
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

/** Both when the page holds anything: clients go on until they meet an empty one. */
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
