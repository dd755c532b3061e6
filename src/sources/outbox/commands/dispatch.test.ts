import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { OutboxStore } from '../../../../test/world/outbox.ts'
import { stores } from '../../../../test/world/stores.ts'
import { bartleby } from '../../../../test/world/terminal-double.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))

describe.each(stores)('bartleby outbox dispatch on $name', (kind) => {
  let outbox: OutboxStore
  let receiver: Server
  let bodies: string[]
  let signatures: unknown[]
  beforeEach(async () => {
    outbox = await OutboxStore.open(kind)
    bodies = []
    signatures = []
    receiver = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      bodies.push(Buffer.concat(chunks).toString())
      signatures.push(request.headers['webhook-signature'])
      response.end()
    })
    receiver.listen(0, '127.0.0.1')
    await once(receiver, 'listening')
  })
  afterEach(async () => {
    receiver.closeAllConnections()
    receiver.close()
    await outbox.close()
  })

  // A server that listens on a port has an address with one.
  const address = () => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  const dispatch = (...flags: string[]) =>
    bartleby(['outbox', 'dispatch', '--url', outbox.url, '--log-level', 'silent', ...flags], {
      env: { BARTLEBY_OUTBOX_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    })

  it('posts what is due now, signed, and ends', async () => {
    for (const payload of ['a', 'b', 'c']) await outbox.insert({ payload })
    expect(await dispatch('--to', address(), '--once')).toEqual({
      code: 0,
      out: '3 delivered, 0 failed attempts',
      err: '',
    })
    expect(bodies.toSorted()).toEqual(['a', 'b', 'c'])
    expect(signatures).toEqual([1, 2, 3].map(() => expect.stringMatching(/^v1,/)))
    expect((await outbox.rows()).every((row) => row.processed_at !== null)).toBe(true)
  })

  it('goes on until it is asked to stop', async () => {
    const child = spawn(
      'node_modules/.bin/node',
      [
        'bin/bartleby.js',
        'outbox',
        'dispatch',
        '--url',
        outbox.url,
        '--to',
        address(),
        '--poll-interval-seconds',
        '0.1',
      ],
      { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] },
    )
    let printed = ''
    child.stdout.on('data', (chunk) => {
      printed += chunk
    })
    const ended = once(child, 'exit')
    await outbox.insert({ payload: 'first' })
    await expect.poll(() => bodies).toEqual(['first'])
    await outbox.insert({ payload: 'second' })
    await expect.poll(() => bodies).toEqual(['first', 'second'])
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(printed).toBe('2 delivered, 0 failed attempts\n')
  })

  it('says what is wrong with its flags, or with the table', async () => {
    expect(await dispatch('--to', 'ftp://x', '--once')).toMatchObject({
      code: 2,
      err: expect.stringContaining('url'),
    })
    expect(await dispatch('--to', 'log', '--once', '--batch-size', '0')).toMatchObject({
      code: 2,
      err: expect.stringContaining('batchSize'),
    })
    expect(await dispatch('--to', 'log', '--once', '--table', 'nowhere')).toMatchObject({
      code: 3,
      err: expect.stringContaining("table 'nowhere' does not exist"),
    })
  })
})

describe('bartleby outbox dispatch', () => {
  const dispatch = (url: string, ...flags: string[]) =>
    bartleby(['outbox', 'dispatch', '--url', url, '--to', 'log', '--once', ...flags])

  it('makes no file where there is none', async () => {
    const path = join(tmpdir(), `bartleby-nowhere-${process.pid}.db`)
    expect(await dispatch(`sqlite:${path}`)).toEqual({
      code: 3,
      out: '',
      err: `bartleby: there is no database at '${path}'`,
    })
    expect(existsSync(path)).toBe(false)
  })

  it.each([
    ['sqlite::memory:', [], '--url is neither'],
    ['mysql://app:hunter2@db/shop', [], '--url is neither'],
    ['postgres://db/shop', ['--log-level', 'shout'], 'fatal, error, warn'],
  ])('ends with 2 for %s %o', async (url, flags, problem) => {
    const { code, err } = await dispatch(url, ...flags)
    expect(code).toBe(2)
    expect(err).toContain(problem)
    expect(err).not.toContain('hunter2')
  })
})
