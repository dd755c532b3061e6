/** The command as a process: what it prints, how it ends, what signals do. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bartleby as here } from '../../test/world/terminal-double.ts'
import { QueueClient } from '../client/index.ts'

// Starting a process takes seconds on a busy machine.
const bin = fileURLToPath(new URL('../../bin/bartleby.js', import.meta.url))

let folder: string
let children: ChildProcess[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-process-'))
  children = []
})

afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<{ code: number | null; out: string; err: string }>
  /** Resolves with the address once the server has said it. */
  readonly url: Promise<string>
}

function bartleby(args: readonly string[]): Running {
  const env = { ...process.env, BARTLEBY_LOG_LEVEL: 'silent' }
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let out = ''
  let err = ''
  const heard = Promise.withResolvers<string>()
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk
    const url = /bartleby listening on (\S+)/.exec(out)?.[1]
    if (url !== undefined) heard.resolve(url)
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    err += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ code, out, err }))
  return { child, ended, url: heard.promise }
}

describe('bartleby serve', () => {
  it('says where it listens, serves at once, and ends with 0 on SIGTERM', async () => {
    const server = bartleby(['serve', '--port', '0'])
    const url = await server.url
    expect((await fetch(`${url}/health`)).status).toBe(200)
    server.child.kill('SIGTERM')
    expect(await server.ended).toEqual({ code: 0, out: `bartleby listening on ${url}\n`, err: '' })
  })

  it('ends with 0 on Ctrl-C while a consumer waits, and tells the consumer why', async () => {
    const server = bartleby(['serve', '--port', '0', '--store', 'sqlite::memory:'])
    const client = new QueueClient({ url: await server.url })
    await client.create({ queueName: 'q', leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 })
    const waiting = client.lease({ queueName: 'q', clientId: 'c', batchSize: 1 }).catch((error) => error)
    while ((await client.stats('q')).leaseWaiting === 0);
    server.child.kill('SIGINT')
    expect(await waiting).toMatchObject({ code: 'stopping' })
    expect((await server.ended).code).toBe(0)
  })

  it('tells in one line that the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const address = other.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const { code, err } = await bartleby(['serve', '--port', String(port)]).ended
    other.close()
    expect({ code, err }).toEqual({
      code: 1,
      err: `bartleby: port ${port} of 127.0.0.1 is already in use; choose another with --port\n`,
    })
  })

  it('refuses an open address without tokens with code 2', async () => {
    const { code, err } = await here(['serve', '--host', '0.0.0.0'])
    expect(code).toBe(2)
    expect(err).toContain('auth.tokens')
  })
})

describe('bartleby migrate', () => {
  it('brings a new store up to date, and then has nothing more to do', async () => {
    const args = ['migrate', '--store', `sqlite:${join(folder, 'store.db')}`]
    const first = JSON.parse((await here([...args, '--json'])).out)
    expect(first).toEqual({ from: 0, to: expect.any(Number) })
    const second = await here(args)
    expect(second).toMatchObject({ code: 0, out: `the store is up to date (version ${first.to})` })
  })
})
