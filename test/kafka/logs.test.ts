/** A whole day of a server, with everything in its log: no secret, no payload, no key, no header value is there, nor in history and metrics. */
import { hash } from 'node:crypto'
import { expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { TOKEN } from '../world/kafka/http.ts'
import { KafkaServers } from '../world/kafka/server.ts'
import { ServerLog } from '../world/logs.ts'
import { stores } from '../world/stores.ts'

/** Words that are nowhere else. */
const KEY = 'key-xyzzy'
const PAYLOAD = 'payload-plugh'
const HEADER = 'header-frobnicate'
const OVERRIDE = 'override-quux'
const WRONG_TOKEN = 'token-waldo'

const SECRETS = [KEY, PAYLOAD, HEADER, OVERRIDE, WRONG_TOKEN, TOKEN, hash('sha256', TOKEN, 'hex')]
/** A text, and what its bytes look like in base64, in hex, and as numbers one by one, as careless logging writes them. */
const forms = (text: string): string[] => {
  const bytes = Buffer.from(text)
  return [
    text,
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('hex'),
    [...bytes].join(','),
    [...bytes].map((byte, at) => `"${at}":${byte}`).join(','),
  ]
}

const MODULE = `
export default (event) => {
  if (event.type === 'throw') throw new Error('it threw')
  return { action: 'publish' }
}
`

describeKafka('what a server writes about itself', () => {
  for (const store of stores) {
    it(`holds nothing of what it was trusted with, on ${store.name}`, async () => {
      const captured = new ServerLog('trace')
      const here = await KafkaServers.open(store, {
        services: { fine: {}, away: { hasNoRetryTopic: true } },
        kafka: {
          processors: [{ module: './decide.mjs' }],
          publish_timeout_ms: 2_000,
          max_message_bytes: 20_000,
        },
        files: { 'decide.mjs': MODULE },
        log: captured.log,
      })
      const [fine, away] = [here.service('fine'), here.service('away')]
      const told: string[] = []
      const call = async (method: string, path: string, init: RequestInit = {}): Promise<number> => {
        const answer = await fetch(`${here.url}${path}`, {
          method,
          ...init,
          headers: { authorization: `Bearer ${TOKEN}`, ...init.headers },
        })
        const text = await answer.text()
        // Who asks for events gets them; what is refused is told without them.
        if (!answer.ok) told.push(text)
        return answer.status
      }
      try {
        const more = [['note', HEADER]] as const
        const plain = { key: KEY, value: { data: PAYLOAD }, excMsg: HEADER, excClass: HEADER, more }
        await here.die(fine, [
          plain,
          { ...plain, value: `${PAYLOAD} is not json` },
          { ...plain, type: 'throw' },
          // History goes by correlation ids: those it has.
          { ...plain, correlationId: 'no uuid' },
          { ...plain, eventId: HEADER, originalEventId: HEADER },
          { ...plain, value: { data: PAYLOAD.repeat(2_000) } },
          { ...plain, originalTopic: `retry-${HEADER}` },
        ])
        await here.die(fine, [{ ...plain, service: HEADER }])
        await here.die(away, [plain])
        await here.expectPending(fine, 7)
        await here.expectPending(away, 1)
        await here.expectPending({ name: '~unknown' }, 1)

        const at = `/kafka/${fine.name}`
        expect(await call('GET', `${at}?detail=true`)).toBe(200)
        expect(await call('GET', `/kafka/rpc/dry-run/${fine.name}`)).toBe(200)
        expect(await call('POST', at, { headers: { 'if-match': '"nothing"' } })).toBe(412)
        expect(await call('POST', at, { body: `{"payload": "${OVERRIDE}"}` })).toBe(400)
        expect(await call('POST', at, { headers: { authorization: `Bearer ${WRONG_TOKEN}` } })).toBe(401)
        expect(await call('POST', at)).toBe(204)
        const statuses: number[] = []
        for (let n = 1; n < 7; n++) {
          statuses.push(await call('POST', at), await call('DELETE', at))
        }
        expect(statuses).toEqual([409, 204, 500, 204, 409, 204, 204, 204, 400, 204, 404, 404])
        expect(await call('POST', `/kafka/${away.name}`)).toBe(503)
        const [event] = await here.preview(away)
        const override = { topic: 'orders', type_: OVERRIDE, key: OVERRIDE, payload: { data: OVERRIDE } }
        const body = JSON.stringify({ dlq_id: event?.bartleby?.dlq_id, override })
        expect(await call('POST', `/kafka/${away.name}/orders`, { body })).toBe(503)
        expect(await call('POST', '/kafka/~unknown')).toBe(409)
        expect(await call('POST', '/kafka/~unknown/orders', { body: `{"${OVERRIDE}` })).toBe(422)

        const history = JSON.stringify(await here.history())
        const metrics = await (await fetch(`${here.url}/metrics`)).text()
        await here.stop()
        await here.start()
        await here.stop()
        const said = { log: captured.text, errors: told.join('\n'), history, metrics }
        expect(said.log).toContain('a record was not published to Kafka')
        for (const secret of SECRETS.flatMap(forms)) {
          const where = Object.entries(said).filter(([, text]) => text.includes(secret))
          expect([secret, where.map(([name]) => name)]).toEqual([secret, []])
        }
      } finally {
        await here.close()
      }
    })
  }
})
