/** An operator's session at a terminal: from the first look at what died to the last letter, against real servers. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterClient, QueueClient } from '../../src/client/index.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { bartleby, type World } from '../world/terminal-double.ts'

// Starting a process takes seconds on a busy machine.
const BYTES = Uint8Array.of(0xff, 0, 1, 10)
const ORDER = '{"order":7,"total":12345678901234567890}'

let folder: string
let here: ServerHere
/** Another office, with tokens. */
let there: ServerHere
let queues: QueueClient

const hash = (text: string) => createHash('sha256').update(text).digest('hex')
const TOKENS = [
  { name: 'look', role: 'viewer', sha256: hash('look') },
  { name: 'work', role: 'operator', sha256: hash('work') },
]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bartleby-session-'))
  const config = join(folder, 'bartleby.json')
  await writeFile(config, JSON.stringify({ auth: { tokens: TOKENS } }))
  here = await startServer({ store: 'sqlite::memory:', testApi: false })
  there = await startServer({ store: 'sqlite::memory:', testApi: false, config })
  queues = new QueueClient({ url: here.url })
  const settings = { leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 }
  await queues.create({ ...settings, queueName: 'orders-dead' })
  await queues.create({ ...settings, queueName: 'orders', deadQueue: 'orders-dead' })
  await queues.create({ ...settings, queueName: 'hmac-rotation-queue' })
  await queues.produce({ queueName: 'orders', items: [{ payload: ORDER, kind: 'order' }] })
  await settleNext('orders', 'dead')
  const letters = new LetterClient({ url: here.url })
  for (let number = 1; number <= 6; number++) {
    await letters.capture({
      engine: 'hmac',
      originalQueue: 'hmac-rotation-queue',
      sourceId: `rotation-${number}`,
      instanceId: `vault-${number}`,
      originalMessage: number === 6 ? BYTES : `{"vault":${number}}`,
      errorMessage: `connection to 10.0.0.${number} reset\u001b[31m by peer`,
      errorClass: 'NetworkError',
      dequeueCount: number,
      headers: { trace: `t-${number}` },
    })
  }
})

afterAll(async () => {
  await here?.stop()
  await there?.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Works on the next item of a queue as a consumer would. */
async function settleNext(queueName: string, fate: 'complete' | 'dead'): Promise<void> {
  const { partition, items } = await queues.lease({ queueName, clientId: 'worker', batchSize: 1 })
  const ids = items.map(({ id }) => id)
  if (fate === 'complete') await queues.complete({ queueName, partition, ids })
  else await queues.retry({ queueName, partition, items: ids.map((id) => ({ id, dead: true })) })
}

const run = (args: readonly string[], world: World = {}) =>
  bartleby(args, { env: { BARTLEBY_URL: here.url }, ...world })

/** Runs a command that must end well; gives what it printed. */
async function done(...args: string[]): Promise<string> {
  const { code, out, err } = await run(args)
  expect({ code, args, err: code === 0 ? '' : err }).toEqual({ code: 0, args, err: '' })
  return out
}

/** The name of the queue letter: `letters list` shows it. */
const item = async (): Promise<string> =>
  JSON.parse(await done('letters', 'list', 'source:queues', '--json'))[0].instanceId

describe('finding letters', () => {
  it('lists them as a table that fits the terminal, and never prints what commands it', async () => {
    const draw = () => {}
    const screen = { columns: 80, rows: 24, draw, onResize: () => draw, onKey: () => draw }
    const env = { BARTLEBY_URL: here.url, NO_COLOR: '1' }
    const { out } = await run(['letters', 'list'], { env, screen })
    const lines = out.split('\n')
    expect(lines[0]).toMatch(/^STATUS +ENGINE +QUEUE +KEY +ERROR +ATTEMPTS +AGE$/)
    expect(lines).toHaveLength(8)
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
    expect(out).not.toContain('\u001b')
    expect((await run(['letters', 'list'], { screen })).out).toContain('\u001b[33mPending')
    expect(await done('letters', 'list')).toContain(
      'NetworkError: connection to 10.0.0.6 reset\\x1b[31m by peer',
    )
  })

  it('filters by flags of the API and by the words of the console', async () => {
    const keys = async (...args: string[]) =>
      JSON.parse(await done('letters', 'list', ...args, '--json')).map(
        (each: { instanceId: string }) => each.instanceId,
      )
    expect(await keys('--engine', 'hmac', '--min-attempts', '5')).toEqual(['vault-6', 'vault-5'])
    expect(await keys('engine:hmac', 'attempts:>4', 'error:reset\u001b[31m by')).toEqual([
      'vault-6',
      'vault-5',
    ])
    expect(await keys('engine:hmac status:pending key:vault-2')).toEqual(['vault-2'])
    expect(await run(['letters', 'list', 'status:pending', '--status', 'pending'])).toMatchObject({
      code: 2,
      err: 'bartleby: --status and the query say the same; leave one out',
    })
    expect(await keys('age:>1h')).toEqual([])
    expect(await keys('--limit', '3')).toHaveLength(3)
    expect(await keys('--all')).toHaveLength(7)
    const { err } = await run(['letters', 'list', '--limit', '2'])
    expect(err).toBe('2 of 7 letters; see more with --limit N or --all')
  })

  it('counts, groups and looks back', async () => {
    expect(await done('counts')).toMatch(/http +hmac +hmac-rotation-queue +Pending +6\n/)
    expect(await done('counts', '--by', 'status')).toMatch(
      /^Pending +7\nin all 7 pending, 0 resolved, 0 expired$/m,
    )
    const groups = await done('signatures')
    expect(groups).toMatch(/^1-\w+ +6 +6 +[▁▂▃▄▅▆▇█]{24} +\d+s +NetworkError: /m)
    const [, signature = ''] = /^(1-\w+) +6/m.exec(groups) ?? []
    expect(await done('signatures', 'show', signature)).toMatch(
      /pending +6\n[\s\S]*engines +hmac\n[\s\S]*example +hmac vault-6-/,
    )
    expect(await done('history', '--operation', 'capture', '--limit', '2')).toMatch(
      /hmac +capture +Succeeded/,
    )
    expect(await done('engines')).toMatch(/^hmac +- +6 /m)
    expect(await done('queues', 'list')).toMatch(/^orders +0 +0 +0 +0 +0 +1 +- +unlimited +orders-dead$/m)
    expect(await done('top', '--once')).toMatch(
      /^7 pending {3}0 resolved[\s\S]*Letters by source[\s\S]*Errors[\s\S]*Queues[\s\S]*Newest/m,
    )
  })
})

describe('one letter', () => {
  it('is shown with its case file, and its payload byte for byte', async () => {
    const shown = await done('letters', 'show', 'queues', await item())
    expect(shown).toMatch(/^queues \S+ {2}Pending\n/)
    expect(shown).toContain('    "total": 12345678901234567890\n')
    expect(shown).toMatch(/Timeline\n {2}\S+ \S+ {2}failed \(1\) {2}Rejected/)
    const { bytes, out } = await run(['letters', 'show', 'hmac', 'vault-6', '--payload'])
    expect([bytes, out]).toEqual([Buffer.from(BYTES), ''])
    expect(await done('letters', 'show', 'hmac', 'vault-6')).toMatch(/00000000 {2}ff 00 01 0a +\.\.\.\.\n/)
  })

  it('is tried dry, and an edit compared', async () => {
    const plain = await done('letters', 'retry', 'queues', await item(), '--dry-run')
    expect(plain).toMatch(/^would send to 'orders'; nothing was sent\n {2}payload +40 bytes, JSON, sha256/)
    const args = ['letters', 'retry', 'queues', await item(), '--dry-run', '--payload-file', '-']
    const { out } = await run(args, { stdin: ORDER.replace('90}', '91}') })
    expect(out).toContain('  -   "total": 12345678901234567890\n  +   "total": 12345678901234567891\n')
    expect((await run(args, { stdin: ORDER.replace(',', ', ') })).out).toContain('only white space differs')
  })

  it('is sent back and comes back, then is sent edited and confirmed', async () => {
    const name = await item()
    const first = run(['letters', 'retry', 'queues', name, '--wait'])
    await settleNext('orders', 'dead')
    expect(await first).toMatchObject({ code: 1, err: 'bartleby: it came back: a consumer rejected it' })
    const fixed = join(folder, 'fixed.json')
    await writeFile(fixed, '{"order":8}')
    const second = run([
      'letters',
      'retry',
      'queues',
      name,
      '--payload-file',
      fixed,
      '--notes',
      'wrong order',
      '--wait',
    ])
    await settleNext('orders', 'complete')
    const { code, out } = await second
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/^sent to 'orders' as \w+\nconfirmed: its item was completed$/),
    })
    const shown = await done('letters', 'show', 'queues', name)
    expect(shown).toMatch(/ Resolved\n[\s\S]*sent +as \w+ to orders, confirmed/)
    expect(shown).toContain('“wrong order”')
    const { err } = await run(['letters', 'retry', 'queues', name])
    expect(err).toBe('bartleby: letter cannot be retried; it is Resolved, and only Pending letters can be')
  })

  it('is discarded with a reason, and restored', async () => {
    expect((await run(['letters', 'discard', 'hmac', 'vault-1'])).code).toBe(2)
    expect(await done('letters', 'discard', 'hmac', 'vault-1', '--notes', 'a test')).toMatch(
      /^hmac vault-1-\S+ was discarded$/,
    )
    expect(await done('letters', 'restore', 'hmac', 'vault-1')).toMatch(/was restored$/)
  })
})

describe('letters that nobody looked at for long', () => {
  it('expire, and it is said until when they can be restored', async () => {
    const letters = new LetterClient({ url: there.url, token: 'work' })
    const lastFailureAtUtc = '2020-01-01T00:00:00Z'
    const old = { engine: 'tls', sourceId: 'old', instanceId: 'old', originalMessage: '', errorMessage: 'x' }
    await letters.capture({ ...old, lastFailureAtUtc })
    const env = { BARTLEBY_URL: there.url, BARTLEBY_TOKEN: 'work' }
    const expire = ['letters', 'expire', '--older-than-days', '90', '--engine', 'tls']
    // Of either side of midnight.
    const days = [90, 91].map((n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10))
    const day = `(?:${days.join('|')})`
    expect(await run(expire, { env })).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        new RegExp(
          `expire 1 pending letters of engine 'tls'; they can be restored until ${day} \\S+Z; add --yes`,
        ),
      ),
    })
    const { out } = await run([...expire, '--yes'], { env })
    expect(out).toMatch(new RegExp(`^1 letters were expired; they can be restored until ${day} `))
    expect((await run(['letters', 'show', 'tls', 'old'], { env })).out).toMatch(
      new RegExp(`kept until +${day} `),
    )
    expect((await run(['letters', 'restore', 'tls', 'old'], { env })).out).toMatch(/was restored$/)
    const [letter] = (await letters.list({ engine: 'tls' })).items
    if (letter !== undefined) await letters.discard(letter, 'done with')
  })
})

describe('many letters', () => {
  const query = ['--query', 'engine:hmac attempts:>=4']

  it('are not touched before the number was said and confirmed', async () => {
    const args = ['letters', 'retry', ...query]
    const plan = 'send back 3 letters (status:pending engine:hmac attempts:>=4)'
    expect(await run(args)).toMatchObject({ code: 2, err: `bartleby: this will ${plan}; add --yes to go on` })
    const asked: string[] = []
    const answer = (question: string) => {
      asked.push(question)
      return '4'
    }
    expect(await run(args, { isTTY: true, answer })).toMatchObject({
      code: 1,
      err: 'bartleby: nothing was changed',
    })
    expect(asked).toEqual([`This will ${plan}. Type the number to go on: `])
    const dry = await done(...args, '--dry-run')
    expect(dry).toMatch(
      /^Send 3 letters back to hmac-rotation-queue\.\n[\s\S]* {2}3 {2}eligible [\s\S]*\nnothing was changed$/,
    )
    expect(await done('counts', '--status', 'Pending', '--by', 'status')).toContain('in all 6 pending')
  })

  it('are sent back and waited for, and the numbers add up', async () => {
    const sending = run(['letters', 'retry', ...query, '--wait', '--wait-timeout', '10s'], {
      isTTY: true,
      answer: '3',
      redraw: () => {},
    })
    for (const fate of ['complete', 'complete', 'complete'] as const)
      await settleNext('hmac-rotation-queue', fate)
    const { code, out } = await sending
    expect({ code, out }).toEqual({
      code: 0,
      out: [
        'Sent 3 letters back to hmac-rotation-queue: 3 confirmed.',
        '3 planned = 3 sent back + 0 skipped + 0 failed + 0 remaining',
        '3 sent back = 3 confirmed + 0 returned + 0 unconfirmed',
      ].join('\n'),
    })
  })

  it('are discarded and restored by query', async () => {
    const discard = [
      'letters',
      'discard',
      '--query',
      'engine:hmac',
      '--notes',
      'old vaults',
      '--yes',
      '--json',
    ]
    expect(JSON.parse(await done(...discard, '--limit', '2'))).toMatchObject({
      state: 'done',
      action: 'discard',
      reason: 'old vaults',
      counts: { planned: 2, sent: 2, skipped: 0, failed: 0, remaining: 0 },
    })
    expect(
      await done('letters', 'restore', '--query', 'status:resolved engine:hmac error:vault', '--yes'),
    ).toBe('Restored 5 letters.\n5 planned = 5 restored + 0 skipped + 0 failed + 0 remaining')
    expect(await done('letters', 'retry', '--query', 'engine:kafka')).toBe(
      'no letters match status:pending engine:kafka',
    )
  })

  it('that can go nowhere are not sent, and it is said why', async () => {
    await queues.delete({ queueName: 'hmac-rotation-queue' })
    const { code, out, err } = await run(['letters', 'retry', '--query', 'engine:hmac', '--yes'])
    expect({ code, out, err }).toEqual({
      code: 1,
      out: '',
      err: 'bartleby: Nothing to do: of 6 letters 6 have no destination.',
    })
  })
})

describe('moving letters', () => {
  it('exports them whole, and imports each once', async () => {
    const file = join(folder, 'letters.ndjson')
    await run(['letters', 'export', '--output', file])
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
    expect(lines).toHaveLength(7)
    expect(JSON.parse(lines.find((line) => line.includes('rotation-6')) ?? '')).toMatchObject({
      originalMessage: Buffer.from(BYTES).toString('base64'),
      originalMessageEncoding: 'base64',
    })
    expect((await run(['letters', 'export', '--output', file])).code).toBe(2)
    const { bytes } = await run(['letters', 'export', 'engine:hmac'])
    expect(bytes?.toString().trimEnd().split('\n')).toHaveLength(6)

    const env = { BARTLEBY_URL: there.url, BARTLEBY_TOKEN: 'work' }
    expect(await run(['letters', 'import', file], { env })).toMatchObject({
      code: 0,
      out: 'of 7 letters: 6 created, 0 known already, 1 left out because not pending',
    })
    expect((await run(['letters', 'import', '-'], { env, stdin: bytes ?? '' })).out).toBe(
      'of 6 letters: 0 created, 6 known already',
    )
    const copy = await run(['letters', 'show', 'hmac', 'vault-6', '--payload'], { env })
    expect(copy.bytes).toEqual(Buffer.from(BYTES))
    expect((await run(['letters', 'show', 'hmac', 'vault-6'], { env })).out).toContain('trace: t-6')
  })

  it('says which lines it cannot take', async () => {
    const { code, out, err } = await run(['letters', 'import', '-'], {
      stdin: 'nonsense\n\n{"engine":"hmac"}\n',
    })
    expect({ code, out }).toEqual({ code: 1, out: 'of 2 letters: 0 created, 0 known already, 2 refused' })
    expect(err).toBe(
      "bartleby: 2 were refused:\n  line 1: it is no JSON\n  line 3: it is no exported letter: 'rowKey' is missing",
    )
  })
})

describe('what goes wrong', () => {
  it.each([
    [['letters', 'show', 'hmac', 'nobody'], 3, "engine 'hmac' has no letter 'nobody'"],
    [['letters', 'list', 'queu:orders'], 2, "'queu' is none of the keys status, outcome"],
    [['letters', 'list', '--engine', 'nobody'], 2, "engine is unknown; 'nobody' is none of"],
    [['letters', 'list', '--from-date', 'monday'], 2, 'fromDate is invalid'],
    [['letters', 'retry'], 2, "or many by a query such as --query 'status:pending'"],
    [['letters', 'retry', 'hmac'], 2, 'name one by engine and row key'],
    [['letters', 'retry', 'hmac', 'vault-1', '--q', 'abc'], 2, 'not both'],
    [['letters', 'retry', '--query', 'status:resolved'], 2, 'only pending letters can be retried'],
    [['letters', 'restore', '--query', 'engine:hmac'], 2, 'status:resolved or status:expired'],
    [
      ['letters', 'retry', 'hmac', 'vault-1', '--payload-file', '/nowhere'],
      2,
      '--payload-file cannot be read',
    ],
    [['signatures', 'show', '1-0'], 3, 'signature does not exist'],
    [['letter'], 2, 'Did you mean letters?'],
    [['letters', 'retyr'], 2, 'Did you mean retry?'],
    [['top', '--interval', 'fast'], 2, "--interval is 'fast'"],
  ])('%j ends with %i', async (args, code, message) => {
    const result = await run(args)
    expect(result.err).toContain(message)
    expect(result.code).toBe(code)
  })

  it('is said when a token may only look, or is missing, or nobody answers', async () => {
    const env = { BARTLEBY_URL: there.url, BARTLEBY_TOKEN: 'look' }
    expect((await run(['letters', 'list'], { env })).code).toBe(0)
    const act = await run(['letters', 'discard', '--query', 'engine:hmac', '--notes', 'x', '--yes'], { env })
    expect(act).toMatchObject({ code: 1, out: '' })
    expect(act.err).toContain("needs the role 'operator' and your token has 'viewer'")
    expect((await run(['counts'], { env: { BARTLEBY_URL: there.url } })).err).toContain('BARTLEBY_TOKEN')
    const away = await run(['counts'], { env: { BARTLEBY_URL: 'http://127.0.0.1:9' } })
    expect(away).toMatchObject({ code: 1, err: expect.stringContaining('bartleby serve') })
  })
})

describe('the program itself', () => {
  it('does the same as a process', async () => {
    const bin = fileURLToPath(new URL('../../bin/bartleby.js', import.meta.url))
    const env = { ...process.env, BARTLEBY_URL: here.url, NO_COLOR: '1' }
    const child = spawn(process.execPath, [bin, 'letters', 'show', 'hmac', 'vault-6', '--payload'], { env })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => void chunks.push(chunk))
    const [code] = await once(child, 'close')
    expect({ code, bytes: Buffer.concat(chunks) }).toEqual({ code: 0, bytes: Buffer.from(BYTES) })
  })
})
