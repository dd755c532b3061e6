/** Under which names a server answers, over real connections: a page whose name was bound to this machine must find nobody. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import {
  closeServers,
  received,
  type Script,
  type ScriptedServer,
  scriptedServer,
} from '../../test/world/scripted-server.ts'

afterEach(closeServers)

const tokens = [
  { name: 'look', role: 'viewer', sha256: createHash('sha256').update('look').digest('hex') },
] as const

async function listening(script: Script = {}): Promise<ScriptedServer> {
  const server = await scriptedServer(script)
  await server.app.listen({ host: '127.0.0.1', port: 0 })
  return server
}

/** The status and the text of the answer to a request whose head is given line by line. */
async function ask({ app }: ScriptedServer, ...head: readonly string[]) {
  // It listens on a port, so its address has one.
  const { port } = app.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const answer = received(socket)
  socket.write(`${head.join('\r\n')}\r\nConnection: close\r\n\r\n`)
  const text = await answer
  return { status: Number(text.split(' ')[1]), text }
}
const get = (server: ScriptedServer, host: string, path = '/api/session') =>
  ask(server, `GET ${path} HTTP/1.1`, `Host: ${host}`)

const OURS = [
  ...['localhost', 'localhost:1853', 'LOCALHOST', 'localhost.', 'bartleby.localhost', '127.0.0.1'],
  ...['127.0.0.1:80', '127.9.9.9', '[::1]', '[::1]:1853'],
]
const OTHERS = [
  ...[
    'evil.example',
    'evil.example:1853',
    'localhost.evil.example',
    'evillocalhost',
    '127.0.0.1.evil.example',
  ],
  ...['10.0.0.1', '[fd00::1]', 'localhost@evil.example', 'localhost:port', '', '127.0.0.1:1:2'],
]

describe('a server without tokens', () => {
  it('is served under the names of this machine', async () => {
    const server = await listening()
    for (const host of OURS) expect([host, (await get(server, host)).status]).toEqual([host, 200])
  })

  it('answers 421 under any other', async () => {
    const server = await listening()
    for (const host of OTHERS) expect([host, (await get(server, host)).status]).toEqual([host, 421])
  })

  it('answers so before any work, on every path, in the shape of its API, also to its own origin', async () => {
    const server = await listening({
      queues: { stats: async () => expect.unreachable() },
      webhooks: {},
    })
    const post = (path: string) =>
      ask(server, `POST ${path} HTTP/1.1`, 'Host: evil.example', 'Origin: http://evil.example')
    const queues = await post('/v1/queue.stats')
    expect(queues.text).toContain('"code":421,"code_text":"Misdirected Request","message":"unknown host; ')
    expect((await post('/api/dlq/expire')).text).toContain('"code":"host_unknown"')
    expect((await post('/kafka/orders')).text).toContain('{"detail":"unknown host; ')
    for (const path of ['/channel/x', '/', '/assets/x', '/nothing', '/openapi.json', '/metrics'])
      expect([path, (await post(path)).status]).toEqual([path, 421])
    const page = await ask(server, 'GET / HTTP/1.1', 'Host: evil.example', 'Accept: text/html')
    expect(page.status).toBe(421)
    expect(page.text).toContain("'evil.example' is none of the names")
    expect(page.text).toContain('http.allowedHosts')
  })

  it('says how it is under every name', async () => {
    const server = await listening()
    for (const path of ['/health', '/health/live', '/health/ready'])
      expect((await get(server, 'evil.example', path)).status).toBe(200)
    expect((await get(server, 'evil.example', '/healthy')).status).toBe(421)
  })

  it('serves clients of HTTP/1.0, which name no host', async () => {
    const server = await listening()
    expect((await ask(server, 'GET /api/session HTTP/1.0')).status).toBe(200)
  })
})

describe('allowed hosts', () => {
  const http = { allowedHosts: ['dlq.example.com', '*.inner.example'] }

  it.each([
    ['without tokens', {}],
    ['with tokens', { tokens }],
  ])('are served beside those of the machine, and nobody else is, %s', async (_, script) => {
    const server = await listening({ ...script, http })
    const named = ['dlq.example.com', 'DLQ.example.com:443', 'a.inner.example', 'a.b.inner.example']
    for (const host of [...OURS, ...named])
      expect([host, (await get(server, host)).status]).toEqual([host, 200])
    for (const host of [...OTHERS, 'inner.example', 'x.dlq.example.com'])
      expect([host, (await get(server, host)).status]).toEqual([host, 421])
  })

  it('are not needed with tokens: any host is served, as proxies need', async () => {
    const server = await listening({ tokens })
    expect((await get(server, 'dlq.example.com')).status).toBe(200)
  })
})

it('refuses two hosts, with tokens or without', async () => {
  for (const script of [{}, { tokens }]) {
    const server = await listening(script)
    for (const path of ['/api/session', '/health'])
      expect((await ask(server, `GET ${path} HTTP/1.1`, 'Host: localhost', 'hOST: localhost')).status).toBe(
        400,
      )
  }
})
