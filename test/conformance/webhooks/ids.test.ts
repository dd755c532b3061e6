/** Ids are the client's own: any text, compared byte for byte, and every link leads back to what it names. */
import { describe, expect, it } from 'vitest'
import { type Broker, brokers, expectRefusal, expectStatus, freshId } from './bed.ts'

const ODD = [
  'a%b',
  '100%25',
  'under_score',
  'two words',
  'é',
  'e\u0301',
  '日本語',
  '😀',
  'a/b',
  'a\\b',
  'a?b=c&d#e',
  'a+b',
  'a;b,c',
  `quote'"\``,
  'a:b@c',
  '<b>&amp;',
  '*',
  "'; DROP TABLE webhook_channels; --",
] as const

const segment = encodeURIComponent
/** Header values are bytes: what is not ASCII goes over the wire as UTF-8. */
const asHeader = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

brokers('ids', (ground) => {
  describe.each(ODD)('%j', (odd) => {
    it('names a producer, a channel, a consumer and a message', async () => {
      const broker = ground()
      const { client, receiver } = broker
      const id = `${freshId('odd')} ${odd}`
      const channel = `/channel/${segment(id)}`
      const hook = `/${freshId('hook')}`
      await expectStatus(200, client.put(`/producer/${segment(id)}`, { token: 't' }))
      await expectStatus(200, client.put(channel, { token: 't' }))
      const consumer = await expectStatus(
        200,
        client.put(`${channel}/consumer/${segment(id)}`, { token: 't', callbackUrl: receiver.url + hook }),
      )
      expect(consumer.json()).toMatchObject({
        ID: id,
        Name: id,
        DeadLetterQueueURL: `${channel}/consumer/${segment(id)}/dlq`,
      })
      const posted = await expectStatus(
        201,
        client.post(`${channel}/broadcast`, 'x', {
          'X-Broker-Channel-Token': 't',
          'X-Broker-Producer-ID': asHeader(id),
          'X-Broker-Producer-Token': 't',
          'X-Broker-Message-ID': asHeader(id),
        }),
      )
      const location = posted.header('location')
      expect(location).toBe(`${channel}/message/${segment(id)}`)
      expect((await client.get(location)).json()).toMatchObject({ ID: id, ProducedBy: id })
      await expectLinksLeadBack(broker, id)
      await broker.eventually(() => {
        expect(receiver.at(hook)).toHaveLength(1)
      })
      const [callback] = receiver.at(hook)
      const text = (name: string) => Buffer.from(callback?.headers[name] ?? '', 'latin1').toString('utf8')
      const sent = ['x-broker-channel-id', 'x-broker-consumer-id', 'x-broker-message-id'].map(text)
      // Spaces at the ends of a header's value belong to nobody.
      expect(sent).toEqual(Array(3).fill(id.trim()))
    })
  })

  /** Every link to something with this id gives exactly that. */
  async function expectLinksLeadBack({ client }: Broker, id: string): Promise<void> {
    const channel = `/channel/${segment(id)}`
    for (const list of ['/producers', '/channels', `${channel}/consumers`, `${channel}/messages`]) {
      const { Result } = (await client.get(list)).json<{ Result: string[] }>()
      // The newest comes first.
      const [link = ''] = Result
      expect((await client.get(link)).json(), link).toMatchObject({ ID: id })
    }
    const { ConsumersURL } = (await client.get(channel)).json<{ ConsumersURL: string }>()
    await expectStatus(200, client.get(ConsumersURL))
  }

  it('differ when their letters differ in case, accents or form', async () => {
    const { client } = ground()
    const stem = freshId('same')
    const variants = ['k', 'K', 'é', 'É', 'e', 'e\u0301', 'k ', '_', '%', '__', '%%'].map((end) => stem + end)
    for (const id of variants) {
      expect((await client.get(`/channel/${segment(id)}`)).status, id).toBe(404)
      await expectStatus(200, client.put(`/channel/${segment(id)}`, { token: id }))
    }
    for (const id of variants) {
      expect((await client.get(`/channel/${segment(id)}`)).json()).toMatchObject({ ID: id, Token: id })
    }
  })

  it('are the same however they are encoded', async () => {
    const { client } = ground()
    const id = freshId('plain')
    await expectStatus(200, client.put(`/channel/${id}`, {}))
    const encoded = [...id].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('')
    expect((await client.get(`/channel/${encoded}`)).json()).toMatchObject({ ID: id })
    expect((await client.get(`/channel/${encoded.toUpperCase()}`)).json()).toMatchObject({ ID: id })
  })

  it('never name the row of a pattern', async () => {
    const { client } = ground()
    const id = freshId('pattern')
    await expectStatus(200, client.put(`/channel/${id}`, { token: 't' }))
    const hook = { callbackUrl: 'http://127.0.0.1:1/x', token: 't', type: 'pull' }
    await expectStatus(200, client.put(`/channel/${id}/consumer/k1`, hook))
    for (const pattern of ['%', '_', '%25', `${id.slice(0, -1)}_`]) {
      await expectRefusal(404, 'Request resource not found', client.get(`/channel/${segment(pattern)}`))
      await expectRefusal(404, 'Request resource not found', client.get(`/producer/${segment(pattern)}`))
    }
    for (const pattern of ['%', '__', 'k_', 'K1']) {
      const path = `/channel/${id}/consumer/${segment(pattern)}`
      await expectRefusal(404, 'Request resource not found', client.get(path))
      await expectRefusal(
        401,
        'consumer could not be found',
        client.get(`${path}/queued-jobs`, {
          'X-Broker-Channel-Token': 't',
          'X-Broker-Consumer-Token': 't',
        }),
      )
      await expectRefusal(
        404,
        'Request resource not found',
        client.get(`/channel/${id}/message/${segment(pattern)}`),
      )
    }
  })

  it('have 255 characters at most, and no zero', async () => {
    const { client } = ground()
    for (const id of ['x'.repeat(255), 'é'.repeat(255)]) {
      await expectStatus(200, client.put(`/producer/${segment(id)}`, {}))
    }
    for (const id of ['x'.repeat(256), 'zero\0zero']) {
      expect((await client.put(`/producer/${segment(id)}`, {})).status).toBe(400)
      expect((await client.get(`/producer/${segment(id)}`)).status).toBe(404)
    }
  })

  it('that cannot be decoded name nothing', async () => {
    const { client } = ground()
    for (const path of ['/channel/%', '/channel/%zz', '/channel/%c3', '/producer/%E0%A4%A']) {
      const { status } = await client.get(path)
      expect([400, 404], `${path}: ${status}`).toContain(status)
    }
  })
})
