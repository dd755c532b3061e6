/** Conditional updates: a PUT over something that exists, and the removal of a consumer, need its `Last-Modified`. */
import { beforeEach, describe, expect, it } from 'vitest'
import { type Broker, brokers, expectRefusal, expectStatus, freshId, type Headers } from './bed.ts'

const MISSING = 'Bad Request: Update is missing `If-Unmodified-Since` header '
const DIFFERENT = 'Update failed due to mismatch of `If-Unmodified-Since` header value'
const LONG_AGO = 'Mon, 01 Jan 2001 00:00:00 GMT'

const KINDS = ['producer', 'channel', 'consumer'] as const

const httpDate = (rfc3339: string) => new Date(rfc3339).toUTCString()

brokers('a conditional update', (ground) => {
  describe.each(KINDS)('of a %s', (kind) => {
    let broker: Broker
    let path: string

    const form = (settings: Record<string, string>) => ({ callbackUrl: 'http://127.0.0.1:1/x', ...settings })
    const put = (settings: Record<string, string>, since?: string) => {
      const headers: Headers = since === undefined ? {} : { 'If-Unmodified-Since': since }
      return broker.client.put(path, form(settings), headers)
    }
    /** What the answer and the next GET say that it was changed at, which must be the same. */
    const changed = async (answer: ReturnType<typeof put>) => {
      const given = await expectStatus(200, answer)
      const got = await broker.client.get(path)
      const at = given.header('last-modified')
      expect(got.headers['last-modified']).toBe(at)
      expect(httpDate(given.json<{ ChangedAt: string }>().ChangedAt)).toBe(at)
      expect(got.text).toBe(given.text)
      return at
    }

    beforeEach(async () => {
      broker = ground()
      const id = freshId('x')
      if (kind === 'consumer') {
        await expectStatus(200, broker.client.put(`/channel/${id}`, {}))
        path = `/channel/${id}/consumer/k`
      } else path = `/${kind}/${id}`
    })

    it('is refused without a condition, and with another one', async () => {
      const at = await changed(put({ name: 'first', token: 'one' }))
      await expectRefusal(400, MISSING, put({ name: 'second', token: 'two' }))
      await expectRefusal(412, DIFFERENT, put({ name: 'second', token: 'two' }, LONG_AGO))
      // The same instant in another form is not the same text.
      await expectRefusal(412, DIFFERENT, put({ name: 'second' }, new Date(at).toISOString()))
      expect((await broker.client.get(path)).json()).toMatchObject({ Name: 'first', Token: 'one' })
    })

    it('is done with the condition it was given last', async () => {
      const first = await changed(put({ name: 'first', token: 'one' }))
      const second = await changed(put({ name: 'second', token: 'two' }, first))
      // Within the same second it counts as changed a second later.
      expect(Date.parse(second) - Date.parse(first)).toBe(1000)
      await expectRefusal(412, DIFFERENT, put({ name: 'third' }, first))
      await broker.jump(30)
      const third = await changed(put({ name: 'third', token: 'two' }, second))
      expect(third).toBe(httpDate(broker.at(0)))
    })

    it('that changes nothing leaves it as it is', async () => {
      const at = await changed(put({ name: 'same', token: 'one' }))
      await broker.jump(5)
      expect(await changed(put({ name: 'same', token: 'one' }, at))).toBe(at)
    })

    it('gives what is left out its default', async () => {
      const at = await changed(put({ name: 'named', token: 'one' }))
      const answer = await expectStatus(200, put({}, at))
      expect(answer.json()).toMatchObject({
        Name: path.slice(path.lastIndexOf('/') + 1),
        Token: expect.stringMatching(/^[A-Za-z0-9]{12}$/),
      })
    })

    it('is done for one of several that come at the same time', async () => {
      const at = await changed(put({ name: 'first', token: 'one' }))
      const answers = await Promise.all(
        [1, 2, 3, 4, 5].map((n) => put({ name: `at once ${n}`, token: 'one' }, at)),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412])
      const winner = answers.find(({ status }) => status === 200)
      expect((await broker.client.get(path)).text).toBe(winner?.text)
    })

    it('is made for one of several that create it at the same time', async () => {
      const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => put({ name: `at once ${n}` })))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400])
    })

    it('cuts the time of a creation just before a new second', async () => {
      const second = (broker.now / 1_000_000n + 10n) * 1_000_000n
      await broker.freeze(second + 999_999n)
      const at = await changed(put({ token: 'one' }))
      expect(at).toBe(new Date(Number(second / 1000n)).toUTCString())
      await broker.jump(0.000_001)
      const next = await changed(put({ token: 'two' }, at))
      expect(Date.parse(next) - Date.parse(at)).toBe(1000)
    })
  })

  describe('of a consumer to be removed', () => {
    it('is checked like any other', async () => {
      const channel = `/channel/${freshId('c')}`
      const { client } = ground()
      await expectStatus(200, client.put(channel, {}))
      const path = `${channel}/consumer/k`
      await expectRefusal(404, 'Request resource not found', client.delete(path))
      const made = await expectStatus(200, client.put(path, { callbackUrl: 'http://127.0.0.1:1/x' }))
      await expectRefusal(400, MISSING, client.delete(path))
      await expectRefusal(412, DIFFERENT, client.delete(path, { 'If-Unmodified-Since': LONG_AGO }))
      const since = { 'If-Unmodified-Since': made.header('last-modified') }
      const answers = await Promise.all([1, 2, 3].map(() => client.delete(path, since)))
      expect(answers.map(({ status }) => status).sort()).toEqual([204, 404, 404])
      await expectRefusal(404, 'Request resource not found', client.get(path))
    })
  })

  it('is checked after the media type and the channel, before the callback and the type', async () => {
    const { client } = ground()
    const channel = freshId('c')
    const path = `/channel/${channel}/consumer/k`
    const body = 'type=odd&callbackUrl=nowhere'
    await expectRefusal(415, 'Media type not supported', client.send('PUT', path, { body }))
    const formed = (headers: Headers = {}, text = body) =>
      client.send('PUT', path, {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
        body: text,
      })
    await expectRefusal(404, 'Request resource not found', formed())
    await expectStatus(200, client.put(`/channel/${channel}`, {}))
    await expectRefusal(400, 'callbackUrl must be an absolute http or https URL', formed())
    const made = await expectStatus(200, formed({}, 'callbackUrl=http://127.0.0.1:1/x'))
    await expectRefusal(400, MISSING, formed())
    await expectRefusal(412, DIFFERENT, formed({ 'If-Unmodified-Since': LONG_AGO }))
    const since = { 'If-Unmodified-Since': made.header('last-modified') }
    await expectRefusal(400, 'callbackUrl must be an absolute http or https URL', formed(since))
    await expectRefusal(
      400,
      'type must be push or pull',
      formed(since, 'type=odd&callbackUrl=http://127.0.0.1:1/x'),
    )
  })
})
