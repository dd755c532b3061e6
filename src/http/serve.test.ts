/** A whole server on a real store: starting, stopping in order, and connections that come and go. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { type Config, loadConfig } from '../config/index.ts'
import { type RunningServer, serve } from './serve.ts'

const running: RunningServer[] = []
const agents: Agent[] = []

afterEach(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.destroy()))
  await Promise.all(running.splice(0).map((server) => server.stop()))
})

async function start(changes: Partial<Config> = {}): Promise<RunningServer> {
  const config = loadConfig({
    env: { BARTLEBY_LOG_LEVEL: 'silent', BARTLEBY_TEST_API: '1' },
    flags: { port: 0, store: 'sqlite::memory:' },
  })
  const server = await serve({ ...config, ...changes })
  running.push(server)
  return server
}

/** One client with connections of its own. */
function client({ url }: RunningServer) {
  const dispatcher = new Agent({ connections: 100, headersTimeout: 0, bodyTimeout: 0 })
  agents.push(dispatcher)
  return async (
    path: string,
    body: object,
    signal?: AbortSignal,
  ): Promise<{ status: number; body: unknown }> => {
    const reply = await request(`${url}/v1/${path}`, {
      method: 'POST',
      dispatcher,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    })
    return { status: reply.statusCode, body: await reply.body.json() }
  }
}

type Call = ReturnType<typeof client>

const create = (call: Call, queue_name = 'q') =>
  call('queues.create', { queue_name, lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 })

const lease = (call: Call, client_id: string, signal?: AbortSignal) =>
  call('queue.lease', { queue_name: 'q', batch_size: 1, client_id, request_timeout: '5m' }, signal)

const produce = (call: Call) =>
  call('queue.produce', { queue_name: 'q', request_timeout: '1m', items: [{ utf8: 'x' }] })

/** Asks until as many leases wait; that a request has arrived cannot be seen from outside otherwise. */
async function waiting(call: Call, count: number): Promise<void> {
  for (;;) {
    const { body } = await call('queue.stats', { queue_name: 'q' })
    // The stats reply of the contract, as far as it is needed here.
    const { logicalQueues } = body as { logicalQueues: { lease_waiting?: number }[] }
    if ((logicalQueues[0]?.lease_waiting ?? 0) === count) return
  }
}

/** A request whose body is still to come; the server's "100 Continue" proves that it has the rest. */
async function halfSent({ url }: RunningServer): Promise<{ finish(): Promise<string> }> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(
    'POST /v1/queue.stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
  )
  expect(String((await once(socket, 'data'))[0])).toContain('100 Continue')
  return {
    finish: async () => {
      socket.write('{}')
      const [answer] = await once(socket, 'data')
      return String(answer)
    },
  }
}

describe('a server', () => {
  it('is healthy as soon as it has started, at the address it tells', async () => {
    const { url } = await start()
    expect((await request(`${url}/health`)).statusCode).toBe(200)
    expect((await request(`${url}/health/ready`)).statusCode).toBe(200)
  })

  it('passes items from hand to hand', async () => {
    const call = client(await start())
    expect(await create(call)).toEqual({ status: 200, body: { code: 200 } })
    expect(await produce(call)).toEqual({ status: 200, body: { code: 200 } })
    expect(await lease(call, 'a')).toEqual({
      status: 200,
      body: {
        queue_name: 'q',
        items: [{ id: expect.any(String), attempts: 1, lease_deadline: expect.any(String), bytes: 'eA==' }],
      },
    })
  })

  it('refuses to serve other machines without tokens', async () => {
    await expect(start({ host: '0.0.0.0' })).rejects.toThrow('auth.tokens is empty')
  })

  it('counts its calls of the store', async () => {
    const server = await start()
    const call = client(server)
    await create(call)
    await produce(call)
    const metrics = await (await request(`${server.url}/metrics`)).body.text()
    expect(metrics).toMatch(/bartleby_store_seconds_count\{verb="[\w.]+"\} \d+/)
    expect(metrics).toContain('bartleby_queue_ready{queue="q"} 1')
  })
})

describe('a client that goes away while its lease waits', () => {
  it('neither blocks its client id nor gets items', async () => {
    const call = client(await start())
    await create(call)
    const gone = new AbortController()
    const abandoned = lease(call, 'a', gone.signal)
    await waiting(call, 1)
    gone.abort()
    await expect(abandoned).rejects.toThrow()
    await waiting(call, 0)
    const again = lease(call, 'a')
    await waiting(call, 1)
    await produce(call)
    expect((await again).body).toMatchObject({ items: [{ attempts: 1 }] })
  })
})

describe('a server that stops', () => {
  it('answers the leases that wait', async () => {
    const server = await start()
    const call = client(server)
    await create(call)
    const leases = [lease(call, 'a'), lease(call, 'b')]
    await waiting(call, 2)
    await server.stop()
    for (const { status, body } of await Promise.all(leases)) {
      expect(status).toBe(453)
      expect(body).toEqual({ code: 453, code_text: 'Request Failed', message: 'queue is shutting down' })
    }
  })

  it('tells new calls that it is shutting down as long as others are being answered', async () => {
    const server = await start()
    const call = client(server)
    await create(call)
    const slow = await halfSent(server)
    const stopped = server.stop()
    const refused = { code: 453, code_text: 'Request Failed', message: 'service is shutting down' }
    expect(await produce(call)).toEqual({ status: 453, body: refused })
    expect((await request(`${server.url}/health/ready`)).statusCode).toBe(503)
    expect((await request(`${server.url}/health/live`)).statusCode).toBe(200)
    expect(await slow.finish()).toContain('"message":"service is shutting down"')
    await stopped
    await expect(produce(client(server))).rejects.toThrow('ECONNREFUSED')
  })

  it('ends the streams of those who follow it, and does not wait for them', async () => {
    const server = await start()
    const { body } = await request(`${server.url}/api/events`)
    let text = ''
    const ended = (async () => {
      for await (const chunk of body) text += String(chunk)
    })()
    const zeros = { Pending: 0, Resolved: 0, Expired: 0, captured: 0, unconfirmed: 0 }
    await expect.poll(() => text).toContain(`event: counts\ndata: ${JSON.stringify(zeros)}\n\n`)
    await Promise.all([server.stop(), ended])
  })

  it('may be told so twice', async () => {
    const server = await start()
    await Promise.all([server.stop(), server.stop()])
  })
})

describe('a log in a file', () => {
  it('is appended to, one JSON object per line', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bartleby-log-'))
    try {
      const file = join(folder, 'deep', 'bartleby.log')
      for (const path of ['/first', '/second']) {
        const server = await start({ log: { level: 'debug', file } })
        await (await request(server.url + path)).body.text()
        await server.stop()
      }
      const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
      const paths = lines.map((line) => JSON.parse(line).url).filter((url) => url !== undefined)
      expect(paths).toEqual(['/first', '/second'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('that cannot be written stops the start, by its key', async () => {
    await expect(start({ log: { level: 'info', file: '/dev/null/x.log' } })).rejects.toThrow(
      /log\.file: cannot/,
    )
  })
})
