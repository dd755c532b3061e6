/**
 * Signatures of outgoing messages as the Standard Webhooks specification has them, so that receivers can check them
 * with its libraries in any language. What is signed is `id.timestamp.body`, with HMAC-SHA256.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

const PREFIX = 'whsec_'
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** What the specification allows, in bytes. */
const SHORTEST_SECRET = 24
const LONGEST_SECRET = 64

/** What is wrong with a secret, when something is; the secret itself is never part of it. */
type ReadSecret =
  | { readonly ok: true; readonly key: KeyObject }
  | { readonly ok: false; readonly reason: string }

/** Reads a secret: base64, with or without `whsec_` before it. */
export function readWebhookSecret(secret: string): ReadSecret {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const hint = `make one with: echo "${PREFIX}$(openssl rand -base64 32)"`
  if (!BASE64.test(text)) return { ok: false, reason: `it is not base64; ${hint}` }
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length < SHORTEST_SECRET || bytes.length > LONGEST_SECRET) {
    const allowed = `${SHORTEST_SECRET} to ${LONGEST_SECRET}`
    return { ok: false, reason: `it has ${bytes.length} bytes and not ${allowed}; ${hint}` }
  }
  return { ok: true, key: createSecretKey(bytes) }
}

/**
 * The headers that sign a message, one signature per key: while a secret is replaced, receivers that know the old one
 * and receivers that know the new one both accept it. `id` must stay the same when the message is sent again.
 */
export function signWebhook(
  keys: readonly KeyObject[],
  message: { readonly id: string; readonly unixSeconds: number; readonly body: Uint8Array },
) {
  const { id, unixSeconds, body } = message
  const signatures = keys.map((key) => {
    const digest = createHmac('sha256', key).update(`${id}.${unixSeconds}.`).update(body).digest('base64')
    return `v1,${digest}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(unixSeconds),
    'webhook-signature': signatures.join(' '),
  }
}
