/** Ids of requests of the webhook API, and its access log: one line per request, with nothing of what it carried. */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Xids } from '../../core/xid.ts'
import { facadeOf, pathOf } from '../../http/facades.ts'
import { firstHeader } from './request.ts'

/** Has the server write a line for each request that it answered, if anybody wants to read it. */
export function logAccess(app: FastifyInstance): void {
  if (app.log.level !== 'debug' && app.log.level !== 'trace') return
  app.addHook('onResponse', (request, reply, done) => {
    const url = pathOf(request.url)
    if (facadeOf(url) === 'webhooks')
      request.log.debug(
        {
          method: request.method,
          url,
          status: reply.statusCode,
          size: request.answerBytes,
          durationMs: Math.round(reply.elapsedTime * 1_000) / 1_000,
          requestId: request.id,
        },
        'request',
      )
    done()
  })
}

/** What is echoed and logged is bounded, and cannot be mistaken for anything else. */
const USABLE = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/

/** Gives requests of this API their id, which is on every answer and in the log: the caller's own, or an xid. Those of the others have ids of their own, or none. */
export const requestIds =
  (xids: Xids) =>
  (request: IncomingMessage): string => {
    if (facadeOf(pathOf(request.url ?? '')) !== 'webhooks') return ''
    const sent = firstHeader(request, 'x-request-id')
    return USABLE.test(sent) ? sent : xids.next()
  }
