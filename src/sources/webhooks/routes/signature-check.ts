/**
 * Asks requests for a signature, before anything that could tell what is there; the body it reads is handed on to the call.
 *
 * `X-Broker-Signature: t=<unix seconds>,v1=<hex>` is an HMAC-SHA256 over `<t>.<body>`. Neither method nor path is signed, and equal bodies
 * of one second have equal signatures: that is the scheme. Cheap checks come first, so that a body is read only behind a right header.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ClientGone } from '../../../api/body.ts'
import { type RequestLimits, sendAnswer } from '../../../api/exact-answer.ts'
import { pathOf } from '../../../api/facade.ts'
import type { Clock, Instant } from '../../../core/clock.ts'
import { Refused } from '../refusal.ts'
import type { WebhookSettings } from '../settings.ts'
import { INTERNAL, refused } from './reply.ts'
import { firstHeader, readRequest } from './request.ts'

interface SignatureCheckOptions extends RequestLimits {
  readonly gatewayAuth: WebhookSettings['gatewayAuth']
  readonly clock: Clock
}

/** For mode `hmac`. */
export function signatureCheck(options: SignatureCheckOptions) {
  const { gatewayAuth, clock, maxBodyBytes, readTimeoutSeconds } = options
  const { secret, toleranceSeconds, exemptPaths } = gatewayAuth
  if (secret === undefined) throw new TypeError('webhooks.gatewayAuth.secret: is missing')
  const key = gatewayKey(secret)
  const isExempt = exemption(exemptPaths)

  const check = async (request: FastifyRequest): Promise<void> => {
    const { raw } = request
    const signature = readSignature(firstHeader(raw, SIGNATURE_HEADER), clock.now(), toleranceSeconds)
    const body = await readRequest(raw, maxBodyBytes, readTimeoutSeconds)
    checkDigest(signature, body, key)
    request.signedBody = body
  }

  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (isExempt(pathOf(request.url))) {
      done()
      return
    }
    check(request).then(done, (thrown: unknown) => {
      if (thrown instanceof ClientGone || request.raw.socket.destroyed) reply.hijack()
      else sendAnswer(request, reply, thrown instanceof Refused ? refused(thrown) : INTERNAL)
    })
  }
}

const SIGNATURE_HEADER = 'x-broker-signature'

/** Seconds since 1970 as they were written. */
export interface Signature {
  readonly seconds: string
  readonly digest: string
}

const INTEGER = /^[+-]?\d+$/
const DIGEST = /^[0-9a-f]{64}$/

export const gatewayKey = (secret: string): KeyObject => createSecretKey(Buffer.from(secret, 'base64'))

/** What can be told without the body. */
export function readSignature(header: string, now: Instant, tolerance: number): Signature {
  if (header === '') throw new Refused('signature_missing')
  const parts = header.split(',', 3)
  const partOf = (key: string) =>
    parts
      .map((part) => part.trim())
      .find((part) => part.startsWith(key))
      ?.slice(key.length)
  const seconds = partOf('t=')
  const digest = partOf('v1=')
  if (parts.length !== 2 || seconds === undefined || digest === undefined || !INTEGER.test(seconds)) {
    throw new Refused('signature_malformed')
  }
  // Whole seconds on both sides, as the signer counts them.
  const age = Number(now / 1_000_000n) - Number(seconds)
  if (Math.abs(age) > tolerance) throw new Refused('signature_untimely')
  return { seconds, digest }
}

export function checkDigest({ seconds, digest }: Signature, rawBody: Uint8Array, key: KeyObject): void {
  const expected = createHmac('sha256', key).update(`${seconds}.`).update(rawBody).digest()
  // A malformed digest is compared too, with a wrong one: it takes as long.
  const given = DIGEST.test(digest) ? Buffer.from(digest, 'hex') : null
  if (!timingSafeEqual(expected, given ?? Buffer.alloc(expected.length)) || given === null) {
    throw new Refused('signature_wrong')
  }
}

/** Anything behind an exempt path that somebody on the way could resolve to another path. */
const UNPLAIN = /%|\\|\/\/|(?:^|\/)\.{1,2}(?:\/|$)/

/** The given paths and all below them, as they were sent. */
export function exemption(paths: readonly string[]): (path: string) => boolean {
  const roots = paths.map((path) => (path.endsWith('/') ? path.slice(0, -1) : path))
  return (path) =>
    roots.some((root) => {
      if (!path.startsWith(root)) return false
      const rest = path.slice(root.length)
      return rest === '' || (rest.startsWith('/') && !UNPLAIN.test(rest))
    })
}
