/** Signatures of outgoing messages by the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

const PREFIX = 'whsec_'
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Bytes, by the specification. */
const SHORTEST_SECRET = 24
const LONGEST_SECRET = 64

/** The reason never contains the secret. */
type ReadSecret =
  | { readonly ok: true; readonly key: KeyObject }
  | { readonly ok: false; readonly reason: string }

/** Base64, with or without `whsec_`. */
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

/** One signature per key, so that receivers with an old or a new secret both accept. `id` stays the same when a message is sent again. */
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
