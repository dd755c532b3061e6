/** The access log of the webhook API: one line per request, with nothing of what it carried. */
import type { FastifyInstance } from 'fastify'
import { facadeOf, pathOf } from '../../http/facades.ts'

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
