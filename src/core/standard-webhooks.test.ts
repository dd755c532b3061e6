import type { KeyObject } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readWebhookSecret, signWebhook } from './standard-webhooks.ts'

// The bytes of these are texts; the signatures below were computed with `openssl dgst -sha256 -mac HMAC`.
const SECRET = 'whsec_YmFydGxlYnkgc2lnbnMgd2hhdCBpdCBkZWxpdmVycyE='
const FORMER = 'whsec_dGhlIHNlY3JldCB0aGF0IGNhbWUgYmVmb3JlIHRoaXM='
const ID = 'ba73d97a-5b6f-e712-ae41-f39ca66495e4'

function keyOf(secret: string): KeyObject {
  const read = readWebhookSecret(secret)
  if (!read.ok) throw new Error(read.reason)
  return read.key
}
const signed = (secrets: readonly string[], id: string, unixSeconds: number, body: Uint8Array | string) =>
  signWebhook(secrets.map(keyOf), { id, unixSeconds, body: Buffer.from(body) })

describe('a signature in the manner of Standard Webhooks', () => {
  it('is the one that others compute', () => {
    expect(signed([SECRET], ID, 1_800_000_000, '{"order":42}')).toEqual({
      'webhook-id': ID,
      'webhook-timestamp': '1800000000',
      'webhook-signature': 'v1,PvmR+EQ1wTj8cVWlYUqaTHYOcSq5/0CSBq6yBzw6ujs=',
    })
    const published = signed(
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      1_614_265_330,
      '{"test": 2432232314}',
    )
    expect(published['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  it('covers any bytes, and none', () => {
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const { 'webhook-signature': signature } = signed([SECRET], ID, 1_800_000_000, everyByte)
    expect(signature).toBe('v1,rcFz4Is1bFp47TpoR/cdCMR6n9AuPaHOx4QL9tm1nXw=')
    const { 'webhook-signature': ofNothing } = signed([SECRET], 'msg_1', 1, '')
    expect(ofNothing).toBe('v1,WE4pLs2iwwAYj7/sNcFNxx2KxaZLzgmzNCr2uFjg5LY=')
  })

  it('is given once per secret while one replaces the other', () => {
    const { 'webhook-signature': both } = signed([SECRET, FORMER], ID, 1_800_000_000, '{"order":42}')
    expect(both).toBe(
      'v1,PvmR+EQ1wTj8cVWlYUqaTHYOcSq5/0CSBq6yBzw6ujs= v1,MBVGA2shim2x6IYiMdisuU2Pf0W083EUHRativ0SqXI=',
    )
  })
})

describe('a secret', () => {
  it('may come with its prefix or without', () => {
    const bare = SECRET.slice('whsec_'.length)
    expect(keyOf(bare).export().equals(keyOf(SECRET).export())).toBe(true)
  })

  it.each([
    ['', 'it has 0 bytes and not 24 to 64'],
    ['whsec_', 'it has 0 bytes and not 24 to 64'],
    ['c2hvcnQ=', 'it has 5 bytes and not 24 to 64'],
    [Buffer.alloc(65).toString('base64'), 'it has 65 bytes and not 24 to 64'],
    ['correct horse battery staple', 'it is not base64'],
    ['YmFydGxlYnkgc2lnbnMgd2hhdCBpdCBkZWxpdmVycyE', 'it is not base64'],
    [`${SECRET}\n`, 'it is not base64'],
  ])('%j is refused, with what is wrong and not with the secret', (secret, reason) => {
    const read = readWebhookSecret(secret)
    expect(read).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
    if (!read.ok && secret.length > 6) expect(read.reason).not.toContain(secret.trim())
  })
})
