/**
 * The hook that asks requests of the webhook API for a signature. It comes before everything else that could tell what is there;
 * the body that it must read for that is handed on to the call.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../core/clock.ts'
import { ClientGone } from '../../http/body.ts'
import { type RequestLimits, sendAnswer } from '../../http/exact-answer.ts'
import { facadeOf, pathOf } from '../../http/facades.ts'
import { isPage } from '../../http/gate.ts'
import { checkDigest, exemption, gatewayKey, readSignature, SIGNATURE_HEADER } from '../gateway.ts'
import { Refused } from '../refusal.ts'
import type { WebhookSettings } from '../settings.ts'
import { INTERNAL, refused } from './reply.ts'
import { firstHeader, readRequest } from './request.ts'

export interface SignatureCheckOptions extends RequestLimits {
  readonly gatewayAuth: WebhookSettings['gatewayAuth']
  readonly clock: Clock
}

/** The hook for these settings; their mode is `hmac`. */
export function signatureCheck(options: SignatureCheckOptions) {
  const { gatewayAuth, clock, maxBodyBytes, readTimeoutSeconds } = options
  const { secret, toleranceSeconds, exemptPaths } = gatewayAuth
  if (secret === undefined) throw new TypeError('webhooks.gatewayAuth.secret: is missing')
  const key = gatewayKey(secret)
  const isExempt = exemption(exemptPaths)

  const isAsked = (request: FastifyRequest): boolean => {
    const path = pathOf(request.url)
    return facadeOf(path) === 'webhooks' && !isExempt(path) && !isPage(request)
  }

  const check = async (request: FastifyRequest): Promise<void> => {
    const { raw } = request
    const signature = readSignature(firstHeader(raw, SIGNATURE_HEADER), clock.now(), toleranceSeconds)
    const body = await readRequest(raw, maxBodyBytes, readTimeoutSeconds)
    checkDigest(signature, body, key)
    request.signedBody = body
  }

  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (!isAsked(request)) {
      done()
      return
    }
    check(request).then(done, (thrown: unknown) => {
      if (thrown instanceof ClientGone || request.raw.socket.destroyed) reply.hijack()
      else sendAnswer(request, reply, thrown instanceof Refused ? refused(thrown) : INTERNAL)
    })
  }
}
