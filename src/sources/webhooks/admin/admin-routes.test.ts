import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ServerHere, startServer } from '../../../../test/world/server.ts'
import { type FreshStore, stores } from '../../../../test/world/stores.ts'
import { openDatabase } from '../../../store/open.ts'
import { pauseConsumer } from '../courier/breaker.ts'

interface Answer {
  readonly status: number
  // Whatever the call answers with: the tests say what they expect of it.
  readonly body: { readonly data: Record<string, unknown>; readonly error?: { readonly code: string } }
}

describe.each(stores)('the office API of webhooks on $name', (store) => {
  let place: FreshStore
  let server: ServerHere

  beforeAll(async () => {
    place = await store.fresh()
    server = await startServer({ store: place.url, webhooks: {} })
    for (const channel of ['b c', 'a']) {
      await put(`/channel/${encodeURIComponent(channel)}`, { token: 't', name: `Channel ${channel}` })
      for (const consumer of ['k/1', 'k2']) {
        const callbackUrl = 'http://someone:secret@127.0.0.1:9/hook?key=secret#part'
        const path = `/channel/${encodeURIComponent(channel)}/consumer/${encodeURIComponent(consumer)}`
        await put(path, { token: 't', callbackUrl, type: consumer === 'k2' ? 'pull' : '' })
      }
    }
  })
  afterAll(async () => {
    await server?.stop()
    await place?.dispose()
  })

  const put = async (path: string, form: Record<string, string>) => {
    const reply = await fetch(`${server.url}${path}`, { method: 'PUT', body: new URLSearchParams(form) })
    expect(reply.status).toBe(200)
  }
  const call = async (method: string, path: string, body?: object): Promise<Answer> => {
    const headers = { 'content-type': 'application/json' }
    const init = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) }
    const reply = await fetch(`${server.url}/api/webhooks${path}`, init)
    // As above.
    return { status: reply.status, body: (await reply.json()) as Answer['body'] }
  }
  const consumers = async (query = '') => {
    const { body } = await call('GET', `/consumers${query}`)
    // As above.
    return body.data as { items: Record<string, unknown>[]; continuationToken: string | null }
  }
  const K1 = '/channels/b%20c/consumers/k%2F1'
  const k1 = async () => (await consumers('?channel=b%20c')).items[0]

  it('lists consumers with all that concerns them, and no secrets', async () => {
    expect(await k1()).toEqual({
      id: expect.stringMatching(/^[0-9a-v]{20}$/),
      channelId: 'b c',
      channelName: 'Channel b c',
      consumerId: 'k/1',
      consumerName: 'k/1',
      type: 'push',
      callbackUrl: 'http://127.0.0.1:9/hook',
      queued: 0,
      inFlight: 0,
      delivered: 0,
      dead: 0,
      oldestDeadAtUtc: null,
      state: 'delivering',
      pausedSinceUtc: null,
      pausedUntilUtc: null,
      pauseReason: null,
      mostAtOnce: null,
      mostPerSecond: null,
      signed: false,
      previousSecretSinceUtc: null,
    })
  })

  it('lists them page by page, each once, of one channel or of all', async () => {
    const seen: unknown[] = []
    let token: string | null = ''
    while (token !== null) {
      const query: string = token === '' ? '' : `&continuationToken=${token}`
      const page = await consumers(`?limit=1${query}`)
      seen.push(...page.items.map(({ channelId, consumerId }) => `${channelId}: ${consumerId}`))
      token = page.continuationToken
    }
    expect(seen).toEqual(['b c: k/1', 'b c: k2', 'a: k/1', 'a: k2'])
    expect((await consumers('?channel=a')).items).toHaveLength(2)
    expect(await call('GET', '/consumers?channel=nobody')).toMatchObject({
      status: 404,
      body: { error: { code: 'channel_unknown' } },
    })
    expect((await call('GET', '/consumers?channel=a&continuationToken=x')).status).toBe(400)
  })

  it('sets limits, and takes them away', async () => {
    const limits = { mostAtOnce: 3, mostPerSecond: 0.5 }
    expect(await call('PUT', `${K1}/limits`, limits)).toMatchObject({ status: 200, body: { data: limits } })
    expect(await k1()).toMatchObject(limits)
    for (const wrong of [{ mostAtOnce: 0 }, { mostPerSecond: 0 }, { mostPerSecond: '1' }, { most: 1 }])
      expect((await call('PUT', `${K1}/limits`, wrong)).status).toBe(400)
    expect(await k1()).toMatchObject(limits)
    await call('PUT', `${K1}/limits`, { mostAtOnce: null })
    expect(await k1()).toMatchObject({ mostAtOnce: null, mostPerSecond: null })
  })

  it('makes secrets that are shown once, of which the previous one holds until it is dropped', async () => {
    const first = await call('POST', `${K1}/secrets`)
    expect(first.body.data.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(await k1()).toMatchObject({ signed: true, previousSecretSinceUtc: null })
    const second = await call('POST', `${K1}/secrets`)
    expect(second.body.data.secret).not.toBe(first.body.data.secret)
    expect(await k1()).toMatchObject({ signed: true, previousSecretSinceUtc: expect.any(String) })
    await call('DELETE', `${K1}/secrets/previous`)
    expect(await k1()).toMatchObject({ signed: true, previousSecretSinceUtc: null })
    await call('DELETE', `${K1}/secrets`)
    expect(await k1()).toMatchObject({ signed: false })
  })

  it('ends a pause, of which health warns as long as it lasts', async () => {
    const health = async () => (await fetch(`${server.url}/health`)).json()
    const db = openDatabase(place.url, { poolSize: 1 })
    const number = await consumerNumber()
    const now = server.office.clock.now()
    await pauseConsumer(db, number, { now, seconds: 60, reason: 'nothing works' })
    await db.close()
    expect(await k1()).toMatchObject({ state: 'paused', pauseReason: 'nothing works' })
    expect(await health()).toMatchObject({
      status: 'warn',
      checks: {
        'webhooks:deliveries': [
          { output: 'deliveries to 1 consumer are paused, because all of them failed' },
        ],
      },
    })
    const metrics = await (await fetch(`${server.url}/metrics`)).text()
    expect(metrics).toContain('bartleby_webhook_consumer_paused{channel="b c",consumer="k/1"} 1')
    expect((await call('POST', `${K1}/resume`)).body.data).toEqual({ resumed: true })
    expect((await call('POST', `${K1}/resume`)).body.data).toEqual({ resumed: false })
    expect(await k1()).toMatchObject({ state: 'delivering', pauseReason: null })
    expect(await health()).toMatchObject({ status: 'pass' })
  })

  const consumerNumber = async () => {
    const channel = await server.office.webhooks.channels.get('b c')
    const consumer = channel && (await server.office.webhooks.consumers.get(channel, 'k/1'))
    return consumer?.number ?? 0
  }

  it('requeues and purges, and knows what nobody is', async () => {
    expect(await call('POST', `${K1}/requeue`)).toMatchObject({ status: 200, body: { data: {} } })
    expect((await call('POST', `${K1}/purge`)).body.data).toEqual({ purged: 0 })
    expect((await call('GET', '/runs')).body.data).toEqual({ runs: [] })
    expect(await call('POST', '/channels/b%20c/consumers/nobody/resume')).toMatchObject({
      status: 404,
      body: { error: { code: 'consumer_unknown' } },
    })
  })
})
