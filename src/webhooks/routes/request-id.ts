/** The id under which a request of the webhook API is known: the caller's own, or an xid. It is on every answer and in the log. */
import type { IncomingMessage } from 'node:http'
import type { Xids } from '../../core/xid.ts'
import { facadeOf, pathOf } from '../../http/facades.ts'
import { firstHeader } from './request.ts'

/** What is echoed and logged is bounded, and cannot be mistaken for anything else. */
const USABLE = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/

/** Gives requests of this API their id. Those of the others have ids of their own, or none. */
export const requestIds =
  (xids: Xids) =>
  (request: IncomingMessage): string => {
    if (facadeOf(pathOf(request.url ?? '')) !== 'webhooks') return ''
    const sent = firstHeader(request, 'x-request-id')
    return USABLE.test(sent) ? sent : xids.next()
  }
