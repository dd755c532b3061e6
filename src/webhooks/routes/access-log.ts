/** The access log of the webhook API: one line per request, with nothing of what it carried. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { facadeOf, pathOf } from '../../http/facades.ts'

/** Writes the line of a request that is answered, if anybody wants to read it. */
export function logAccess(request: FastifyRequest, reply: FastifyReply): void {
  const { log } = request
  if (log.level !== 'debug' && log.level !== 'trace') return
  const url = pathOf(request.url)
  if (facadeOf(url) !== 'webhooks') return
  log.debug(
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
}
