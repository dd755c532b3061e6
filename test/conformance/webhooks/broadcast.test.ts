/** Broadcasts: what is checked, in which order, and that what was accepted is delivered as it was. */
import { beforeAll, describe, expect, it } from 'vitest'
import { brokers, expectRefusal, expectStatus, freshId, type Headers, idInLocation, Lane } from './bed.ts'
import { VECTORS } from './vectors.ts'

const MOST_BYTES = 50_000
const NOT_FOUND = 'Request resource not found'

brokers(
  'a broadcast',
  (ground) => {
    let push: Lane
    let pull: Lane

    beforeAll(async () => {
      push = await Lane.open(ground(), 'push')
      pull = await push.beside('pull')
    })

    it('is checked in this order', async () => {
      const known = await push.broadcast('known')
      const { client } = ground()
      let path = '/channel/none/broadcast'
      let body = 'x'.repeat(MOST_BYTES + 1)
      let headers: Headers = {
        'X-Broker-Channel-Token': 'wrong',
        'X-Broker-Producer-ID': 'nobody',
        'X-Broker-Producer-Token': 'wrong',
        'X-Broker-Scheduled-For': 'soon',
        'X-Broker-Message-ID': known,
      }
      const refused = (status: number, text: string) =>
        expectRefusal(status, text, client.post(path, body, headers))
      const put = (more: Headers) => {
        headers = { ...headers, ...more }
      }

      await refused(404, NOT_FOUND)
      path = `${push.channelPath}/broadcast`
      await refused(403, 'channel token does not match')
      put({ 'X-Broker-Channel-Token': push.channelToken })
      await refused(401, 'producer could not be found')
      put({ 'X-Broker-Producer-ID': push.producer })
      await refused(403, 'producer token does not match')
      put({ 'X-Broker-Producer-Token': push.producerToken })
      await refused(413, 'request body too large')
      body = ''
      await refused(400, 'invalid date format for X-Broker-Scheduled-For, expected ISO-8601/RFC3339 format')
      put({ 'X-Broker-Scheduled-For': ground().at(119) })
      await refused(412, 'scheduled time must be at least 2 minutes in the future')
      put({ 'X-Broker-Scheduled-For': '' })
      await refused(400, 'Necessary information missing for persistence')
      body = 'x'
      await refused(409, 'duplicate message id for channel')
      put({ 'X-Broker-Scheduled-For': ground().at(3600) })
      await refused(409, 'duplicate scheduled message id for channel')
      put({ 'X-Broker-Message-ID': freshId('m') })
      await expectStatus(201, client.post(path, body, headers))
    })

    it('without its headers is refused by the first that is missing', async () => {
      const { client } = ground()
      const path = `${push.channelPath}/broadcast`
      await expectRefusal(403, 'channel token does not match', client.post(path, 'x'))
      const channel = { 'X-Broker-Channel-Token': push.channelToken }
      await expectRefusal(401, 'producer could not be found', client.post(path, 'x', channel))
      const producer = { ...channel, 'X-Broker-Producer-ID': push.producer }
      await expectRefusal(403, 'producer token does not match', client.post(path, 'x', producer))
    })

    it('may be as large as the setting allows, and not larger', async () => {
      const largest = Buffer.alloc(MOST_BYTES, 'x')
      const { body } = await push.delivered(await push.broadcast(largest))
      expect(body.equals(largest)).toBe(true)
      const tooMuch = Buffer.alloc(MOST_BYTES + 1)
      await expectRefusal(413, 'request body too large', push.post(tooMuch))
      await expectRefusal(
        413,
        'request body too large',
        ground().client.send('POST', `${push.channelPath}/broadcast`, {
          headers: push.sender,
          body: tooMuch,
          chunked: true,
        }),
      )
    })

    it('need not say how long it is', async () => {
      const path = `${push.channelPath}/broadcast`
      const options = { headers: push.sender, body: 'in chunks', chunked: true }
      const accepted = await expectStatus(201, ground().client.send('POST', path, options))
      const { body, headers } = await push.delivered(idInLocation(accepted))
      expect(body.toString()).toBe('in chunks')
      expect(headers['content-length']).toBe('9')
    })

    describe('of bytes that are no text', () => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n))

      it('is kept, shown and delivered byte for byte', async () => {
        const messageId = await push.broadcast(bytes)
        const { body } = await push.delivered(messageId)
        expect(body.equals(bytes)).toBe(true)
        const shown = { Payload: bytes.toString('utf8'), PayloadBase64: bytes.toString('base64') }
        const message = await ground().client.get(`${push.channelPath}/message/${messageId}`)
        expect(message.json()).toMatchObject(shown)
        const jobs = await pull.queued('?limit=100')
        expect(jobs.find((job) => job.Message.MessageID === messageId)?.Message).toMatchObject(shown)
      })

      it('is shown so while it waits for its time', async () => {
        const messageId = await push.broadcast(bytes, { 'X-Broker-Scheduled-For': ground().at(3600) })
        const message = await ground().client.get(`${push.channelPath}/scheduled-message/${messageId}`)
        expect(message.json()).toMatchObject({ payload: bytes.toString('utf8') })
        expect(JSON.stringify(message.json())).toContain(bytes.toString('base64'))
      })
    })

    describe('with the id of another', () => {
      const statusesOf = async (posts: readonly Promise<{ status: number }>[]) =>
        (await Promise.all(posts)).map(({ status }) => status).sort()

      it('is accepted once of many at the same time', async () => {
        const messageId = freshId('m')
        const id = { 'X-Broker-Message-ID': messageId }
        const posts = Array.from({ length: 20 }, (_, n) => push.post(`${n}`, id))
        expect(await statusesOf(posts)).toEqual([201, ...Array(19).fill(409)])
        await push.delivered(messageId)
        await pull.jobOf(messageId)
      })

      it('is accepted once, now or for later', async () => {
        const id = { 'X-Broker-Message-ID': freshId('m') }
        const later = { ...id, 'X-Broker-Scheduled-For': ground().at(3600) }
        const posts = Array.from({ length: 20 }, (_, n) => push.post(`${n}`, n % 2 === 0 ? id : later))
        expect(await statusesOf(posts)).toEqual([201, ...Array(19).fill(409)])
      })

      it('is accepted on another channel', async () => {
        const other = await Lane.open(ground(), 'pull')
        const id = { 'X-Broker-Message-ID': await push.broadcast('x') }
        await expectStatus(201, other.post('x', id))
      })
    })

    it('has the priority that its header says', async () => {
      const lane = await Lane.open(ground(), 'pull')
      const texts = { ...VECTORS.priority, '007': 7, '-0': 0, ' 7': 7, '0x10': 0, '1e3': 0, '٣': 0 }
      for (const text of Object.keys(texts)) {
        const header = Buffer.from(text).toString('latin1')
        await lane.broadcast(`said ${text}`, { 'X-Broker-Message-Priority': header })
      }
      const given = (await lane.queued()).map((job) => [
        job.Message.Payload.slice('said '.length),
        job.Priority,
      ])
      expect(Object.fromEntries(given)).toEqual(texts)
      // No number is too large to be accepted.
      for (const digits of [15, 16, 19, 20, 400]) {
        await lane.broadcast('x', { 'X-Broker-Message-Priority': '9'.repeat(digits) })
      }
      expect((await lane.queued()).every((job) => Number.isSafeInteger(job.Priority))).toBe(true)
    })

    describe('with headers to pass on', () => {
      const BARRED: Headers = {
        'X-Broker-Channel-ID': 'evil',
        'X-Broker-Consumer-ID': 'evil',
        'X-Broker-Consumer-Token': 'evil',
        'X-Broker-Anything': 'evil',
        'User-Agent': 'evil',
        'Content-Type': 'text/evil',
        'X-Request-ID': 'evil',
        'Proxy-Authorization': 'evil',
        'Keep-Alive': 'timeout=666',
        TE: 'trailers',
      }

      it('passes none that are its own or of the connection', async () => {
        const names = [
          ...Object.keys(BARRED),
          'Host',
          'Content-Length',
          'Transfer-Encoding',
          'Connection',
          'Trailer',
        ]
        const list = [...names, ...names.map((name) => name.toLowerCase()), 'X-Keep'].join(',')
        const messageId = await push.broadcast('meta', {
          ...BARRED,
          'X-Broker-Metadata-Headers': list,
          'X-Keep': 'yes',
        })
        const callback = await push.delivered(messageId)
        expect(callback.headers).toMatchObject({
          'content-type': 'text/evil', // the message's own
          'user-agent': 'Webhook Message Broker',
          'x-broker-channel-id': push.channel,
          'x-broker-consumer-id': push.consumer,
          'x-broker-consumer-token': push.consumerToken,
          'x-broker-metadata-headers': 'X-Keep',
          'x-keep': 'yes',
          'x-request-id': expect.stringMatching(/^[0-9a-v]{19}[0g]$/),
        })
        const sent = callback.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
        expect(new Set(sent).size).toBe(sent.length)
        for (const name of ['x-broker-anything', 'proxy-authorization', 'te', 'trailer']) {
          expect(sent).not.toContain(name)
        }
        const message = await ground().client.get(`${push.channelPath}/message/${messageId}`)
        expect(message.json()).toMatchObject({ Headers: { 'X-Keep': 'yes' } })
        expect(Object.keys(message.json<{ Headers: object }>().Headers)).toEqual(['X-Keep'])
      })

      it('names them as they were listed, in the order of bytes, of two spellings the first', async () => {
        const messageId = await push.broadcast('meta', {
          'X-Broker-Metadata-Headers': ' zeta ,Alpha,,X-CASE,x-case,Missing,X-Empty, alpha',
          Zeta: '1',
          ALPHA: '2',
          'x-Case': '3',
          'X-Empty': '',
        })
        const callback = await push.delivered(messageId)
        expect(callback.headers).toMatchObject({
          'x-broker-metadata-headers': 'Alpha,X-CASE,zeta',
          zeta: '1',
          alpha: '2',
          'x-case': '3',
        })
        expect(callback.headers).not.toHaveProperty('x-empty')
        const sentNames = callback.rawHeaders.filter((_, i) => i % 2 === 0)
        expect(sentNames).toEqual(expect.arrayContaining(['Alpha', 'X-CASE', 'zeta']))
        const [job] = (await pull.queued('?limit=100')).filter((each) => each.Message.MessageID === messageId)
        expect(job?.Message.Headers).toEqual({ Alpha: '2', 'X-CASE': '3', zeta: '1' })
      })

      it('counts a repeated one by its first value', async () => {
        const accepted = await expectStatus(
          201,
          ground().client.send('POST', `${push.channelPath}/broadcast`, {
            headers: [
              ...Object.entries(push.sender),
              ['X-Broker-Channel-Token', 'second'],
              ['X-Broker-Message-Priority', '3'],
              ['X-Broker-Message-Priority', '4'],
              ['X-Broker-Metadata-Headers', 'X-Twice'],
              ['X-Broker-Metadata-Headers', 'X-Other'],
              ['X-Twice', 'first'],
              ['X-Twice', 'second'],
              ['X-Other', 'other'],
            ],
            body: 'x',
          }),
        )
        const callback = await push.delivered(idInLocation(accepted))
        expect(callback.headers).toMatchObject({
          'x-broker-message-priority': '3',
          'x-broker-metadata-headers': 'X-Twice',
          'x-twice': 'first',
        })
        expect(callback.headers).not.toHaveProperty('x-other')
      })
    })

    it('to a channel without consumers is accepted and done', async () => {
      const { client } = ground()
      const channel = `/channel/${freshId('c')}`
      await expectStatus(200, client.put(channel, { token: push.channelToken }))
      const { headers } = await expectStatus(201, client.post(`${channel}/broadcast`, 'x', push.sender))
      expect((await client.get(headers.location ?? '')).json()).toMatchObject({
        Status: 'DISPATCHED',
        Jobs: [],
      })
    })

    it('goes to those who are there, not to who comes later', async () => {
      const lane = await Lane.open(ground(), 'pull')
      await lane.broadcast('before')
      const late = await lane.beside('pull')
      await lane.broadcast('after')
      const payloads = async (each: Lane) => (await each.queued()).map((job) => job.Message.Payload)
      expect(await payloads(lane)).toEqual(['before', 'after'])
      expect(await payloads(late)).toEqual(['after'])
    })
  },
  { http: { maxBodyBytes: MOST_BYTES } },
)
