/** The id under which a request of the Kafka API is known: the caller's own UUID v4, or a new one. It is on every answer and in history. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isUuidV4 } from '../names.ts'

const HEADER = 'x-request-id'

/** Whether the caller sent an id that can be used. */
export function hasRequestId({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const sent = headers[HEADER]
  return typeof sent === 'string' && isUuidV4(sent)
}

/** The caller's id as it was sent, or a new one. */
export function kafkaRequestId(request: Pick<IncomingMessage, 'headers'>): string {
  return hasRequestId(request) ? String(request.headers[HEADER]) : randomUUID()
}
