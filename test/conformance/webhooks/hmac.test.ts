/** The gateway: signed requests only, except for paths that are exempt, checked before anything else is. */
import { createHmac } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { brokers, expectRefusal, expectStatus, type Headers } from './bed.ts'
import { VECTORS } from './vectors.ts'

const { secretBase64, toleranceSeconds, cases } = VECTORS.hmac
const NOW = 1_700_000_000
const CHANNEL = '/channel/hmac-test-channel'
const SENDER: Headers = {
  'X-Broker-Channel-Token': 'hmac-test-channel-token',
  'X-Broker-Producer-ID': 'hmac-test-producer',
  'X-Broker-Producer-Token': 'hmac-test-producer-token',
}

const digest = (t: number, body: string | Uint8Array) =>
  createHmac('sha256', Buffer.from(secretBase64, 'base64')).update(`${t}.`).update(body).digest('hex')
const signature = (body: string | Uint8Array, t = NOW) => `t=${t},v1=${digest(t, body)}`
const signed = (body: string | Uint8Array, t = NOW): Headers => ({ 'X-Broker-Signature': signature(body, t) })

brokers(
  'the gateway',
  (ground) => {
    beforeEach(() => ground().freeze(BigInt(NOW) * 1_000_000n))

    it.each(cases.map((each, n) => [n + 1, each] as const))('vector %i: %j', async (_, each) => {
      await ground().freeze(BigInt(each.now) * 1_000_000n)
      const method = each.path.endsWith('/broadcast') ? 'POST' : 'GET'
      const answer = await ground().client.send(method, each.path, {
        headers: { ...SENDER, ...(each.header === null ? {} : { 'X-Broker-Signature': each.header }) },
        ...(method === 'POST' ? { body: each.body } : {}),
      })
      if (each.expect !== 'pass') {
        await expectRefusal(each.expect, each.text ?? '', Promise.resolve(answer))
        expect(answer.headers['x-request-id']).toMatch(/^[0-9a-v]{19}[0g]$/)
      } else if (method === 'POST') {
        // What comes next is no matter of the signature.
        expect(answer.status).toBe(each.body === '' ? 400 : 201)
      } else expect(answer.status).toBe(each.path === '/metrics/x' ? 404 : 200)
    })

    const get = (path: string, header?: string) =>
      ground().client.get(path, header === undefined ? {} : { 'X-Broker-Signature': header })
    const wrong = (header: string) => expectRefusal(403, 'invalid signature', get('/channels', header))
    const malformed = (header: string) =>
      expectRefusal(401, 'malformed X-Broker-Signature header', get('/channels', header))

    it('takes parts in any order, with spaces around them', async () => {
      const v1 = `v1=${digest(NOW, '')}`
      for (const header of [`t=${NOW},${v1}`, `${v1},t=${NOW}`, ` t=${NOW} ,  ${v1} `]) {
        await expectStatus(200, get('/channels', header))
      }
    })

    it('takes nothing else for a signature', async () => {
      const good = digest(NOW, '')
      await expectRefusal(401, 'missing X-Broker-Signature header', get('/channels'))
      await expectRefusal(401, 'missing X-Broker-Signature header', get('/channels', ''))
      for (const header of [
        'x',
        ',',
        `t=${NOW}`,
        `v1=${good}`,
        `t=${NOW},t=${NOW}`,
        `t=${NOW},v1=${good},`,
        `t=${NOW},v1=${good},v1=${good}`,
        `t=${NOW},v2=${good}`,
        `t=,v1=${good}`,
        `t=${NOW}.5,v1=${good}`,
        `t=${NOW}x,v1=${good}`,
        `t=0x${NOW.toString(16)},v1=${good}`,
        `T=${NOW},V1=${good}`,
      ]) {
        await malformed(header)
      }
      for (const v1 of ['', good.slice(0, 32), `${good}00`, good.toUpperCase(), 'z'.repeat(64), `${good}é`]) {
        await wrong(`t=${NOW},v1=${v1}`)
      }
    })

    it('tells the time before the signature, within its tolerance', async () => {
      for (const t of [NOW - toleranceSeconds, NOW, NOW + toleranceSeconds]) {
        await expectStatus(200, get('/channels', signature('', t)))
      }
      for (const t of [NOW - toleranceSeconds - 1, NOW + toleranceSeconds + 1, 0]) {
        const text = 'request timestamp outside tolerance window'
        await expectRefusal(403, text, get('/channels', signature('', t)))
        await expectRefusal(403, text, get('/channels', `t=${t},v1=00`))
      }
      for (const t of ['99999999999999999999999', '-99999999999999999999999']) {
        await expectRefusal(
          403,
          'request timestamp outside tolerance window',
          get('/channels', `t=${t},v1=00`),
        )
      }
    })

    it('is asked before routes, methods and tokens', async () => {
      const { client } = ground()
      for (const [method, path] of [
        ['GET', '/nope'],
        ['DELETE', '/producers'],
        ['OPTIONS', '/producers'],
        ['GET', '/producers/'],
        ['POST', '/channel/none/broadcast'],
        ['GET', '/dlq-status'],
      ] as const) {
        const answer = await client.send(method, path)
        expect([answer.status, answer.text], `${method} ${path}`).toEqual([
          401,
          'missing X-Broker-Signature header',
        ])
      }
      await expectStatus(404, get('/nope', signature('')))
    })

    it('checks the bytes of the body, and takes the same ones twice', async () => {
      const body = Buffer.from(Array.from({ length: 256 }, (_, n) => n))
      const headers = { ...SENDER, ...signed(body) }
      const { client } = ground()
      await expectStatus(201, client.post(`${CHANNEL}/broadcast`, body, headers))
      await expectStatus(201, client.post(`${CHANNEL}/broadcast`, body, headers))
      const other = Buffer.from(body).fill(0, 255)
      await expectRefusal(403, 'invalid signature', client.post(`${CHANNEL}/broadcast`, other, headers))
      const form = 'token=t&name=Signed'
      const put = await client.send('PUT', '/channel/signed', {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...signed(form) },
        body: form,
      })
      expect(put.json()).toMatchObject({ Name: 'Signed' })
      const tooMuch = Buffer.alloc(200_001)
      expect(
        (await client.post(`${CHANNEL}/broadcast`, tooMuch, { ...SENDER, ...signed(tooMuch) })).status,
      ).toBe(413)
    })

    describe('lets pass without a signature', () => {
      it.each(['/_status', '/metrics'])('%s', async (path) => {
        await expectStatus(200, get(path))
      })

      it.each(['/metrics/x', '/_status/deep/er', '/debug/pprof/heap', '/metrics/'])('%s', async (path) => {
        expect([301, 404]).toContain((await get(path)).status)
      })

      const ROUNDABOUT = [
        '/metrics/../channels',
        '/metrics/../channel/hmac-test-channel',
        '/metrics/%2e%2e/channels',
        '/metrics/%2E%2E%2Fchannels',
        '/_status/../../channels',
        '/_status/..%2fchannels',
        '//channels',
        '/metrics//../channels',
        '/metrics/./../channels',
        '/metrics\\..\\channels',
        '/metrics;/../channels',
      ]
      it.each(ROUNDABOUT)('nothing else by way of %s', async (path) => {
        const answer = await get(path)
        expect([400, 401, 404], answer.text).toContain(answer.status)
        expect(answer.text).not.toContain('Result')
        expect(answer.text).not.toContain('hmac-test-channel')
      })

      it.each([
        '/metricsfoo',
        '/_statusx',
        '/_Status',
        '/METRICS',
        '/debug',
        '/debug/pprofx',
        '/%5Fstatus/../producers',
      ])('not %s', async (path) => {
        expect((await get(path)).status).toBe(401)
      })
    })

    it('has seeded what its clients need', async () => {
      const status = (await ground().client.get('/_status')).json()
      expect(status).toMatchObject({
        SeedData: {
          DataHash: expect.stringMatching(/^[0-9a-f]{64}$/),
          Channels: [{ ID: 'hmac-test-channel', Name: 'hmac-test-channel', Token: '' }],
          Producers: [{ ID: 'hmac-test-producer', Name: 'hmac-test-producer', Token: '' }],
        },
      })
    })

    it('does not sign deliveries', async () => {
      const { client, receiver } = ground()
      const form = new URLSearchParams({ callbackUrl: `${receiver.url}/signed?`, token: 't' }).toString()
      await expectStatus(
        200,
        client.send('PUT', `${CHANNEL}/consumer/k`, {
          headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...signed(form) },
          body: form,
        }),
      )
      await expectStatus(201, client.post(`${CHANNEL}/broadcast`, 'x', { ...SENDER, ...signed('x') }))
      await ground().eventually(() => {
        expect(receiver.requests).toHaveLength(1)
      })
      expect(receiver.requests[0]?.headers).not.toHaveProperty('x-broker-signature')
    })
  },
  {
    http: { maxBodyBytes: 200_000 },
    webhooks: {
      gatewayAuth: { mode: 'hmac', secret: secretBase64, toleranceSeconds },
      seed: {
        channels: [{ id: 'hmac-test-channel', token: 'hmac-test-channel-token' }],
        producers: [{ id: 'hmac-test-producer', token: 'hmac-test-producer-token' }],
      },
    },
  },
)
