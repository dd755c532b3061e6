/** A server whose webhooks are played by a script, for tests of the HTTP side alone. */
import { type AddressInfo, connect } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { instant } from '../../../src/core/clock.ts'
import { xid } from '../../../src/core/xid.ts'
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../../../src/sources/webhooks/settings.ts'
import type { Channel, Consumer, Producer } from '../../../src/sources/webhooks/webhook.ts'
import { type Script, type ScriptedServer, scriptedServer } from '../scripted-server.ts'

const AT = instant(1_794_705_508_900_000n)
export const ID = xid('dbsggslqmd2qb0aabo3g')

const holder = { id: ID, name: 'Name', token: 'tok-en', createdAt: AT, updatedAt: AT }
export const producer = (producerId: string): Producer => ({ ...holder, producerId })
export const channel = (channelId: string): Channel => ({ ...holder, number: 1, channelId })
export const consumer = (consumerId: string, type: Consumer['type'] = 'push'): Consumer => ({
  ...holder,
  number: 2,
  channel: 1,
  consumerId,
  callbackUrl: 'http://host/hook',
  type,
})

/** A producer that may send. */
export const SENDER = { channel: 1, channelId: 'c', producer: ID }

export const settings = (given: Partial<WebhookSettings> = {}): WebhookSettings => ({
  ...DEFAULT_WEBHOOK_SETTINGS,
  ...given,
})

/** Everything that is asked for exists, under the id that it was asked for by, unless the script says otherwise. */
export const scriptedWebhooks = (
  webhooks: Script['webhooks'] = {},
  rest: Omit<Script, 'webhooks'> = {},
): Promise<ScriptedServer> =>
  scriptedServer({
    webhooks: {
      producers: { get: async (id) => producer(id) },
      channels: { get: async (id) => channel(id) },
      consumers: { get: async (_, id) => consumer(id) },
      ...webhooks,
    },
    ...rest,
  })

/** What is answered to GETs of exactly these paths: other clients would resolve them first. */
export async function getAsSent(
  { app }: { readonly app: FastifyInstance },
  paths: readonly string[],
): Promise<readonly string[]> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  // It listens on a port, so its address has one.
  const { port } = app.server.address() as AddressInfo
  const get = (path: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`),
      )
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      socket.on('end', () => resolve(text)).on('error', reject)
    })
  return Promise.all(paths.map(get))
}
