/**
 * Tokens, secrets and payloads stay where they belong. A server that logs everything it can lives through a working day: every
 * call, right and wrong, deliveries that succeed, fail, time out and find nobody. Then everything that it wrote or answered,
 * except to those who own the secret, is searched.
 */
import { createHmac } from 'node:crypto'
import { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { overlaid } from '../../world/server.ts'
import { stores } from '../../world/stores.ts'
import { Broker, QUICK } from '../../world/webhooks/broker.ts'
import type { WebhookClient } from '../../world/webhooks/client.ts'
import { expectStatus, Lane } from './bed.ts'

/** What nobody may find: each is to be seen nowhere, in no encoding that somebody would think of. */
const SECRETS = {
  gateway: 'gateway-secret-Zq81',
  seedChannel: 'seed-channel-Zq82',
  seedProducer: 'seed-producer-Zq83',
  seedConsumer: 'seed-consumer-Zq84',
  wrongToken: 'wrong-token-Zq85',
  payload: 'payload-Zq86',
  password: 'callback-password-Zq87',
  metadata: 'metadata-value-Zq88',
  query: 'callback-query-Zq89',
} as const

const GATEWAY = Buffer.from(SECRETS.gateway).toString('base64')

function memoryLog(lines: string[]): Logger {
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk))
      done()
    },
  })
  return pino({ level: 'trace' }, stream)
}

describe.each(stores)('secrets on $name', (store) => {
  const lines: string[] = []
  const answers: string[] = []
  let broker: Broker
  let lane: Lane
  let secrets: readonly string[]

  const keep = async (answer: ReturnType<WebhookClient['send']>) => {
    const { status, headers, text } = await answer
    answers.push(`${status} ${JSON.stringify(headers)} ${text}`)
  }

  beforeAll(async () => {
    broker = await Broker.start(store, {
      log: memoryLog(lines),
      webhooks: overlaid(QUICK, {
        api: { exposeTokens: false },
        delivery: { maxRetry: 1, timeoutSeconds: 2 },
        seed: {
          channels: [{ id: 'seeded', token: SECRETS.seedChannel }],
          producers: [{ id: 'seeded', token: SECRETS.seedProducer }],
          consumers: [
            {
              id: 'seeded',
              channel: 'seeded',
              token: SECRETS.seedConsumer,
              // Nobody listens there.
              callbackUrl: `http://user:${SECRETS.password}@127.0.0.1:9/hook?key=${SECRETS.query}`,
            },
          ],
        },
      }),
    })
    lane = await Lane.open(broker, 'push')
    const pull = await lane.beside('pull')
    secrets = [
      broker.place.url,
      ...Object.values(SECRETS),
      lane.channelToken,
      lane.producerToken,
      lane.consumerToken,
      pull.consumerToken,
    ]
    const { client, receiver } = broker

    // A receiver that gives back what it was sent, as some do when they fail.
    receiver.answer(lane.hook, ({ headers, body }) => ({
      status: 500,
      headers: { 'X-Echo': headers['x-broker-consumer-token'] ?? '' },
      body: `cannot take ${body} with ${JSON.stringify(headers)}`,
    }))
    const meta = { 'X-Broker-Metadata-Headers': 'X-Meta', 'X-Meta': SECRETS.metadata }
    await lane.broadcast(SECRETS.payload, meta)
    await keep(
      client.post('/channel/seeded/broadcast', SECRETS.payload, {
        'X-Broker-Channel-Token': SECRETS.seedChannel,
        'X-Broker-Producer-ID': 'seeded',
        'X-Broker-Producer-Token': SECRETS.seedProducer,
      }),
    )
    await lane.broadcast(SECRETS.payload, { 'X-Broker-Scheduled-For': broker.at(200) })
    await wrongCalls(pull)
    await broker.pass(12, 1)
    await broker.jump(200)
    await broker.pass(12, 1)
    await readEverything(pull)
    await failingStore()
  })

  afterAll(() => broker?.stop())

  /** Every call that needs a token, with a wrong one. */
  async function wrongCalls(pull: Lane): Promise<void> {
    const { client } = broker
    const wrong = SECRETS.wrongToken
    for (const header of Object.keys(lane.sender).filter((name) => name.endsWith('Token'))) {
      await keep(lane.post(SECRETS.payload, { [header]: wrong }))
    }
    for (const header of Object.keys(pull.tokens)) {
      const headers = { ...pull.tokens, [header]: wrong }
      for (const path of ['queued-jobs', 'job/nope']) await keep(client.get(`${pull.path}/${path}`, headers))
      await keep(client.delete(`${pull.path}/dlq`, headers))
      await keep(client.post(`${pull.path}/job/nope`, `{"NextState":"${SECRETS.payload}"`, headers))
    }
    await keep(client.send('POST', `${lane.path}/dlq`, { form: { requeue: wrong } }))
    await keep(client.put(lane.path, { token: wrong, callbackUrl: `nowhere/${SECRETS.query}` }))
    await keep(client.put(lane.channelPath, { token: wrong }))
    await keep(client.get(`/channels?next=${wrong}`))
    await keep(client.get('/nope', { 'X-Broker-Signature': wrong, Authorization: `Bearer ${wrong}` }))
    await keep(lane.post('', { 'X-Broker-Message-ID': 'empty' }))
  }

  /** What anybody may read. */
  async function readEverything(pull: Lane): Promise<void> {
    const { client } = broker
    const [job] = (await lane.dead()).DeadJobs
    expect(job).toMatchObject({ Status: 'DEAD', LastError: expect.stringContaining('500') })
    for (const path of [
      '/_status',
      '/metrics',
      '/job-status',
      '/dlq-status',
      '/producers',
      '/channels',
      `/producer/${lane.producer}`,
      '/producer/seeded',
      '/channel/seeded',
      lane.channelPath,
      lane.path,
      pull.path,
      `${lane.path}/dlq`,
      '/channel/seeded/consumer/seeded/dlq',
      `${lane.channelPath}/messages-status`,
      '/health',
      '/openapi.json',
    ]) {
      await keep(client.get(path))
    }
    await keep(client.get(`${lane.path}/job/${job?.ID}`, lane.tokens))
    answers.length > 0 || expect.fail('nothing was answered')
  }

  async function failingStore(): Promise<void> {
    await broker.place.refuseWrites()
    await keep(lane.post(SECRETS.payload))
    await keep(broker.client.put('/channel/unwritten', { token: SECRETS.wrongToken }))
    await broker.place.acceptWrites()
  }

  const found = (texts: readonly string[]) =>
    texts.flatMap((text) =>
      secrets
        .flatMap((secret) => [secret, Buffer.from(secret).toString('base64').replace(/=+$/, '')])
        .filter((secret) => text.includes(secret))
        .map((secret) => `${secret} in ${text}`),
    )

  it('are not in the log', () => {
    // It did log: deliveries that failed, requests, and the store that refused to write.
    expect(lines.length).toBeGreaterThan(10)
    expect(lines.join('')).toContain('"level":50')
    expect(found(lines)).toEqual([])
  })

  it('are not in what anybody may read, nor in errors', () => {
    expect(answers.length).toBeGreaterThan(20)
    // The address of a callback belongs to its consumer, and is shown whole where that is.
    expect(found(answers.filter((answer) => !answer.includes('"CallbackURL":"')))).toEqual([])
    expect(found(answers).filter((each) => !/^callback-/.test(each))).toEqual([])
  })

  it('are not in the letters of dead jobs, nor in their history', async () => {
    const read = async (path: string) => {
      const { status, text } = await broker.client.get(path, { Accept: 'application/json' })
      expect(status, text).toBe(200)
      return text
    }
    const texts = [
      await read('/api/dlq?engine=webhooks'),
      await read('/api/history?engine=webhooks'),
      await read('/api/counts'),
    ]
    expect(texts[0]).toContain(lane.consumer)
    // A letter is the message that died: its payload is there to be read.
    const others = found(texts).filter(
      (each) => !each.startsWith(SECRETS.payload) && !each.startsWith('payload'),
    )
    expect(others).toEqual([])
  })

  it('of the gateway stay there', async () => {
    const gated: string[] = []
    const guard = await Broker.start(store, {
      log: memoryLog(gated),
      webhooks: { gatewayAuth: { mode: 'hmac', secret: GATEWAY } },
    })
    try {
      const t = Number(guard.now / 1_000_000n)
      const v1 = createHmac('sha256', SECRETS.gateway).update(`${t}.`).digest('hex')
      const shown: string[] = []
      for (const header of [`t=${t},v1=${v1}`, `t=${t},v1=00`, `t=${t - 600},v1=${v1}`, v1]) {
        const { text, headers } = await guard.client.get('/channels', { 'X-Broker-Signature': header })
        shown.push(text, JSON.stringify(headers))
      }
      await expectStatus(200, guard.client.get('/_status')).then(({ text }) => shown.push(text))
      await expectStatus(200, guard.client.get('/metrics')).then(({ text }) => shown.push(text))
      const texts = [...gated, ...shown].join('\n')
      for (const secret of [SECRETS.gateway, GATEWAY, v1]) expect(texts).not.toContain(secret)
    } finally {
      await guard.stop()
    }
  })
})
