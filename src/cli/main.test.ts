import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bartleby } from '../../test/world/terminal-double.ts'
import { table } from '../terminal/table.ts'
import { printable } from '../terminal/terminal.ts'

interface Sent {
  readonly path: string
  readonly body: Record<string, unknown>
  readonly authorization: string | undefined
}

let sent: Sent[]
/** Replies by path; everything else is `{"code":200}`. */
let replies: Record<string, { status?: number; body: object }>

beforeEach(() => {
  sent = []
  replies = {}
  vi.stubGlobal('fetch', async (url: string, init: { body: string; headers: Record<string, string> }) => {
    const path = new URL(url).pathname
    sent.push({ path, body: JSON.parse(init.body), authorization: init.headers.authorization })
    const { status = 200, body } = replies[path] ?? { body: { code: 200 } }
    return { status, text: async () => JSON.stringify(body) }
  })
})

afterEach(() => vi.unstubAllGlobals())

const info = {
  queue_name: 'orders',
  lease_timeout: '1m0s',
  expire_timeout: '24h0m0s',
  max_attempts: 3,
  dead_queue: 'orders-dead',
  reference: 'ours',
  requested_partitions: 1,
  created_at: '2027-01-01T00:00:00Z',
  updated_at: '2027-01-01T00:00:00Z',
}

describe('help', () => {
  const commands = [
    ['serve'],
    ['config'],
    ['config', 'check'],
    ['config', 'show'],
    ['migrate'],
    ['verify'],
    ['token'],
    ['token', 'create'],
    ['token', 'hash'],
    ['queues'],
    ...'list info create update delete stats clear peek produce lease complete retry'
      .split(' ')
      .map((name) => ['queues', name]),
    ['letters'],
    ...'list show retry discard restore expire export import'.split(' ').map((name) => ['letters', name]),
    ['redrive'],
    ...'plan start watch pause resume cancel rate list show'.split(' ').map((name) => ['redrive', name]),
    ...['signatures', 'history'].flatMap((group) => [[group], [group, 'list'], [group, 'show']]),
    ...['counts', 'engines', 'top', 'outbox', 'webhooks', 'kafka', 'azure'].map((name) => [name]),
    ...['adopt', 'status', 'dispatch'].map((name) => ['outbox', name]),
    ...['status', 'runs', 'verify', 'purge'].map((name) => ['webhooks', name]),
    ...['check', 'status', 'show', 'reassign'].map((name) => ['kafka', name]),
    ...['check', 'status', 'settle'].map((name) => ['azure', name]),
  ]

  it.each([[], ...commands].map((words) => [words.join(' '), words] as const))(
    'of `bartleby %s` shows an example and ends well',
    async (_, words) => {
      const { code, out } = await bartleby([...words, '--help'])
      expect(code).toBe(0)
      expect(out).toMatch(/Examples?:\n {2}\$ .*bartleby/)
    },
  )

  it('tells the exit codes', async () => {
    expect((await bartleby(['--help'])).out).toContain('3  not found')
  })
})

describe('wrong usage', () => {
  it.each([
    [['nonsense']],
    [[]],
    [['queues', 'produce']],
    [['queues', 'list', '--colour']],
    [['queues', 'create', 'q', '--max-attempts', 'many']],
    [['queues', 'list', '--url', 'not a url']],
    [['queues', 'retry', 'q', 'id', '--in', 'soon']],
    [['queues', 'retry', 'q', 'id', '--at', 'tomorrow']],
    [['queues', 'clear', 'q']],
    [['queues', 'produce', 'q', 'payload', '--file', 'too']],
    [['token', 'create', '--name', 'x', '--role', 'king']],
    [['serve', '--port', '99999']],
    [['serve', '--host', '0.0.0.0']],
    [['migrate', '--store', 'mysql://x']],
    [['verify', '--store', 'mysql://x']],
    [['verify', '--store', 'sqlite::memory:']],
    [['verify', '--fix']],
    [['letters', 'list', 'nobody:knows']],
    [['letters', 'list', '--limit', '0']],
    [['letters', 'retry']],
    [['letters', 'retry', 'hmac']],
    [['letters', 'retry', 'hmac', 'key', '--wait-timeout', 'soon']],
    [['letters', 'discard', 'hmac', 'key']],
    [['letters', 'discard', 'hmac', 'key', '--notes', ' ']],
    [['letters', 'restore', '--query', 'engine:hmac']],
    [['letters', 'import', '/nowhere/letters.ndjson']],
    [['letters', 'retry', '--query', 'engine:hmac', '--limit', '10001']],
    [['redrive', 'plan']],
    [['redrive', 'plan', 'engine:hmac', '--id', 'hmac/a-20270110T090000000000Z']],
    [['redrive', 'plan', 'engine:hmac', '--rate', '0']],
    [['redrive', 'plan', 'engine:hmac', '--canary', 'few']],
    [['redrive', 'plan', 'engine:hmac', '--stop', '20']],
    [['redrive', 'plan', 'engine:hmac', '--action', 'discard']],
    [['redrive', 'plan', 'engine:hmac', '--action', 'erase']],
    [['redrive', 'plan', 'engine:hmac', '--watch']],
    [['redrive', 'plan', 'engine:hmac', '--set-header', 'kind']],
    [['redrive', 'plan', '--id', 'hmac']],
    [['redrive', 'plan', '--ids-file', '/nowhere/ids']],
    [['redrive', 'start']],
    [['redrive', 'start', 'x', '--store', 'sqlite:x.db', '--url', 'http://127.0.0.1:1']],
    [['redrive', 'start', 'x', '--config', 'x.yaml']],
    [['redrive', 'start', 'x', '--store', 'mysql://x']],
    [['redrive', 'start', 'x', '--store', 'sqlite::memory:']],
    [['redrive', 'watch', 'x', '--wait-timeout', 'soon']],
    [['redrive', 'rate', 'x', 'fast']],
    [['redrive', 'show', 'x', '--letters', 'lost']],
    [['letters', 'expire']],
    [['top', '--interval', '0']],
  ])('%j ends with code 2, a reason, and nothing sent', async (args) => {
    const { code, err } = await bartleby(args)
    expect(code).toBe(2)
    expect(err).not.toBe('')
    expect(sent).toEqual([])
  })
})

describe('queues update', () => {
  it('keeps what was not named, since the call would overwrite it', async () => {
    replies['/v1/queues.info'] = { body: info }
    const { code } = await bartleby(['queues', 'update', 'orders', '--lease-timeout', '5m'])
    expect(code).toBe(0)
    expect(sent.at(-1)).toMatchObject({
      path: '/v1/queues.update',
      body: {
        queue_name: 'orders',
        lease_timeout: '5m',
        max_attempts: 3,
        reference: 'ours',
        dead_queue: 'orders-dead',
      },
    })
  })

  it('removes the dead queue when asked to', async () => {
    replies['/v1/queues.info'] = { body: info }
    await bartleby(['queues', 'update', 'orders', '--no-dead-queue'])
    expect(sent.at(-1)?.body).toMatchObject({ dead_queue: '', max_attempts: 3 })
  })
})

describe('what cannot be undone', () => {
  it.each([
    [['queues', 'delete', 'orders'], '/v1/queues.delete'],
    [['queues', 'clear', 'orders', '--queued'], '/v1/queue.clear'],
  ])('%j needs --yes, or a person who types the name', async (args, path) => {
    expect(await bartleby(args)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    expect(await bartleby(args, { isTTY: true, answer: 'order' })).toMatchObject({ code: 1 })
    expect(sent).toEqual([])
    expect(await bartleby(args, { isTTY: true, answer: 'orders' })).toMatchObject({ code: 0 })
    expect(await bartleby([...args, '--yes'])).toMatchObject({ code: 0 })
    expect(sent.map((call) => call.path)).toEqual([path, path])
  })
})

describe('queues produce', () => {
  beforeEach(() => {
    replies['/v1/queue.produceWithIds'] = { body: { items: [{ id: 'x', outcome: 'queued' }] } }
  })

  it('takes the payload from the argument', async () => {
    const { out } = await bartleby(['queues', 'produce', 'q', 'hello', '--dedupe-key', 'k'])
    expect(out).toBe('queued x in partition 0')
    expect(sent[0]?.body).toMatchObject({ items: [{ utf8: 'hello', dedupe_key: 'k' }] })
  })

  it('takes it from stdin and from a file, byte for byte', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bartleby-cli-'))
    try {
      const bytes = Uint8Array.of(0, 255, 10)
      writeFileSync(join(folder, 'payload'), bytes)
      await bartleby(['queues', 'produce', 'q'], { stdin: bytes })
      await bartleby(['queues', 'produce', 'q', '--file', join(folder, 'payload')])
      expect(sent.map(({ body }) => body.items)).toEqual([[{ bytes: 'AP8K' }], [{ bytes: 'AP8K' }]])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('the server', () => {
  it('is found by the environment, and by flags before that', async () => {
    const env = { BARTLEBY_URL: 'http://one:1', BARTLEBY_TOKEN: 'secret' }
    await bartleby(['queues', 'info', 'q'], { env })
    await bartleby(['queues', 'info', 'q', '--token', 'other'], { env })
    expect(sent.map(({ authorization }) => authorization)).toEqual(['Bearer secret', 'Bearer other'])
  })

  it.each([
    [400, "queue does not exist; no such queue named 'q'", 3],
    [454, 'request timeout; no items are in the queue, try again', 3],
    [400, 'invalid batch size; must be greater than zero', 1],
    [401, 'unknown token; it may have been revoked', 1],
  ])('that answers %i "%s" ends with code %i', async (status, message, expected) => {
    replies['/v1/queue.lease'] = { status, body: { code: status, message } }
    const { code, err } = await bartleby(['queues', 'lease', 'q'])
    expect({ code, err }).toEqual({ code: expected, err: expect.stringContaining(`bartleby: ${message}`) })
  })

  it('that cannot be reached is named, with what to try', async () => {
    vi.stubGlobal('fetch', async () => {
      throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:1853') })
    })
    const { code, err } = await bartleby(['queues', 'list'])
    expect(code).toBe(1)
    expect(err).toMatch(/127\.0\.0\.1:1853.*ECONNREFUSED.*bartleby serve/)
  })
})

describe('token create', () => {
  it('prints the token once and its entry with the hash', async () => {
    const { code, out } = await bartleby(['token', 'create', '--name', 'ops', '--role', 'operator'])
    const token = /token \(shown only now\): (\S+)/.exec(out)?.[1] ?? ''
    expect(code).toBe(0)
    expect(token).toMatch(/^bartleby_[\w-]{43}$/)
    expect(out).toContain(`sha256: ${createHash('sha256').update(token).digest('hex')}`)
    const hashed = await bartleby(['token', 'hash'], { stdin: `${token}\n` })
    expect(out).toContain(hashed.out)
  })

  it('adds the entry to a configuration file, never the token', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bartleby-cli-'))
    try {
      const config = join(folder, 'bartleby.yaml')
      writeFileSync(config, '# ours\nport: 9000\n')
      const { out } = await bartleby([
        'token',
        'create',
        '--name',
        'ops',
        '--role',
        'admin',
        '--config',
        config,
        '--json',
      ])
      const { token, sha256 } = JSON.parse(out)
      const text = readFileSync(config, 'utf8')
      expect(text).toContain('# ours')
      expect(text).toContain(sha256)
      expect(text).not.toContain(token)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('what is printed', () => {
  it('lines up, numbers to the right', () => {
    expect(
      table(
        ['NAME', 'N'],
        [
          ['a', 5],
          ['bcdef', 12],
        ],
      ),
    ).toBe('NAME    N\na       5\nbcdef  12')
  })

  it('cannot command the terminal', () => {
    expect(printable('a\u001b[2Jb\n\u009bc')).toBe('a\\x1b[2Jb\\n\\x9bc')
  })

  it('is JSON where asked for, payloads as text and as base64', async () => {
    replies['/v1/queue.peek'] = {
      body: {
        items: [
          { id: 'x', payload: 'aGk=', created_at: '2027-01-01T00:00:00Z' },
          { id: 'y', payload: '/w==', created_at: '2027-01-01T00:00:00Z' },
        ],
      },
    }
    const { out } = await bartleby(['queues', 'peek', 'q', '--json'])
    expect(JSON.parse(out)).toMatchObject([
      { id: 'x', payload: 'hi', payloadBase64: 'aGk=' },
      { id: 'y', payload: null, payloadBase64: '/w==' },
    ])
  })
})
