/** Sessions on whole servers: known to all that share a store, and to the same one after a restart. */
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import { loadConfig } from '../../config/index.ts'
import { type RunningServer, serve } from '../serve.ts'

const running: RunningServer[] = []
const places: FreshStore[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
  await Promise.all(places.splice(0).map((place) => place.dispose()))
})

const tokens = [
  { name: 'ops', role: 'operator', sha256: createHash('sha256').update('t').digest('hex') },
] as const

async function start(store: string): Promise<RunningServer> {
  const config = loadConfig({ env: { BARTLEBY_LOG_LEVEL: 'silent' }, flags: { port: 0, store } })
  const server = await serve(
    { ...config, auth: { tokens }, console: { environment: 'staging', colour: 'orange' } },
    { demo: { healingSignature: 'a', stormSignature: 'b' } },
  )
  running.push(server)
  return server
}

async function cookieOf({ url }: RunningServer): Promise<string> {
  const reply = await fetch(`${url}/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"token":"t"}',
  })
  return reply.headers.get('set-cookie')?.split(';')[0] ?? ''
}

const sessionAt = async ({ url }: RunningServer, cookie: string): Promise<unknown> => {
  const reply = (await (await fetch(`${url}/api/session`, { headers: { cookie } })).json()) as {
    data: unknown
  }
  return reply.data
}

describe.each(stores)('a session on $name', (store) => {
  it('outlives its server, and says what the configuration says', async () => {
    const place = await store.fresh()
    places.push(place)
    const first = await start(place.url)
    const cookie = await cookieOf(first)
    await first.stop()
    expect(await sessionAt(await start(place.url), cookie)).toMatchObject({
      name: 'ops',
      role: 'operator',
      environment: { name: 'staging', colour: 'orange' },
      demo: { healingSignature: 'a', stormSignature: 'b' },
    })
  })

  it('is nothing to a server on another store', async () => {
    const [here, there] = await Promise.all([store.fresh(), store.fresh()])
    places.push(here, there)
    const cookie = await cookieOf(await start(here.url))
    expect(await sessionAt(await start(there.url), cookie)).toMatchObject({ signedIn: false })
  })
})
