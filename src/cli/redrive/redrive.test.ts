/** `bartleby redrive` against a real server: from the plan to the last letter. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ServerHere, startServer } from '../../../test/world/server.ts'
import { type FreshStore, freshSqlite } from '../../../test/world/stores.ts'
import { bartleby, type World } from '../../../test/world/terminal-double.ts'
import { QueueClient } from '../../client/index.ts'
import type { RedriveDetail } from '../../client/redrives.ts'

let server: ServerHere
let queues: QueueClient

beforeAll(async () => {
  server = await startServer({ store: 'sqlite::memory:', testApi: false })
  queues = new QueueClient({ url: server.url })
  await createQueues()
})
afterAll(() => server?.stop())

async function createQueues(): Promise<void> {
  const settings = { leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 }
  await queues.create({ ...settings, queueName: 'orders-dead' })
  await queues.create({ ...settings, queueName: 'orders', deadQueue: 'orders-dead' })
  await queues.create({ ...settings, queueName: 'later' })
}

/** Letters that died in `orders` now, with a kind of their own by which they can be asked for. */
async function letters(kind: string, count: number): Promise<string> {
  const items = Array.from({ length: count }, (_, order) => ({
    payload: `{"order":${order},"of":"${kind}","currency":"€"}`,
    kind,
  }))
  await queues.produce({ queueName: 'orders', items })
  await settle('orders', 'dead', count)
  return `status:pending error:${kind}`
}

/** Works on the next items of a queue as a consumer would; gives what they carried. */
async function settle(queueName: string, fate: 'complete' | 'dead', count = 1): Promise<readonly string[]> {
  const found: string[] = []
  while (found.length < count) {
    const { partition, items } = await queues.lease({
      queueName,
      clientId: 'worker',
      batchSize: count - found.length,
    })
    const ids = items.map(({ id }) => id)
    if (fate === 'complete') await queues.complete({ queueName, partition, ids })
    else await queues.retry({ queueName, partition, items: ids.map((id) => ({ id, dead: true })) })
    found.push(...items.map(({ payload, kind }) => `${kind} ${new TextDecoder().decode(payload)}`))
  }
  return found
}

const redrive = (args: readonly string[], world: World = {}) =>
  bartleby(['redrive', ...args], { env: { BARTLEBY_URL: server.url }, ...world })

/** Runs a command that must end well; gives what it printed. */
async function done(...args: string[]): Promise<string> {
  const { code, out, err } = await redrive(args)
  expect({ code, args, err: code === 0 ? '' : err }).toEqual({ code: 0, args, err: '' })
  return out
}

const planned = async (...args: string[]): Promise<RedriveDetail> =>
  JSON.parse(await done('plan', ...args, '--json'))

const standing = async (id: string): Promise<RedriveDetail> => JSON.parse(await done('show', id, '--json'))

describe('a plan', () => {
  it('accounts for every letter, shows the first, and changes nothing', async () => {
    const query = await letters('plain', 4)
    const out = await done('plan', query, '--rate', '50', '--show', '1')
    expect(out).toMatch(/^Send 4 letters back to orders, at most 50 a second\.\n/)
    expect(out).toMatch(/\n {2}4 {2}matched .*\n {2}4 {2}eligible /)
    expect(out).toMatch(/\n {2}SOURCE +LETTERS +DESTINATION\n {2}queues +4 +orders\n/)
    expect(out).toContain('        "order": 0,\n')
    expect(out).toContain('… and 3 letters more')
    const [, id = ''] = /bartleby redrive start (\w{20}) --watch$/.exec(out) ?? []
    expect(await standing(id)).toMatchObject({ state: 'planned', rate: 50, counts: { remaining: 4 } })
    expect(await queues.peek({ queueName: 'orders' })).toEqual([])
  })

  it('is made of letters that are named one by one', async () => {
    const query = await letters('named', 3)
    const env = { BARTLEBY_URL: server.url }
    const { bytes = '' } = await bartleby(['letters', 'export', query], { env })
    const [first = '', second = ''] = bytes
      .toString()
      .split('\n')
      .map((line) => (line === '' ? '' : JSON.parse(line).rowKey))
    expect((await redrive(['plan', '--ids-file', '-', '--json'], { stdin: bytes })).out).toContain(
      '"eligible": 3',
    )
    const twice = await planned(
      '--id',
      `queues/${first}`,
      '--id',
      `queues/${second}`,
      '--id',
      `queues/${first}`,
    )
    expect(twice).toMatchObject({ ids: 3, numbers: { matched: 3, eligible: 2, duplicate: 1 } })
    expect(await redrive(['plan', '--id', 'queues/nobody'])).toMatchObject({ code: 3 })
  })

  it('shows what a repair makes of letters, and they are sent like that', async () => {
    const query = await letters('repaired', 2)
    const patch = '[{"op":"replace","path":"/currency","value":"EUR"}]'
    const terms = [query, '--to', 'later', '--patch', patch, '--set-header', 'kind=order-v2']
    const out = await done('plan', ...terms)
    expect(out).toContain('-   "currency": "€"\n      +   "currency": "EUR"\n')
    expect(out).toContain('to later, ')
    expect(out).toMatch(/repair +1-[0-9a-f]{16}/)
    const { code } = await redrive(['plan', ...terms, '--start', '--yes', '--watch'])
    expect(code).toBe(0)
    expect(await settle('later', 'complete', 2)).toEqual([
      'order-v2 {"order":0,"of":"repaired","currency":"EUR"}',
      'order-v2 {"order":1,"of":"repaired","currency":"EUR"}',
    ])
  })

  it('with nothing in it says why, and ends with 3', async () => {
    expect(await redrive(['plan', 'error:nosuchthing'])).toMatchObject({
      code: 3,
      out: expect.stringContaining('No letter matches; there is nothing to do.'),
    })
    const { id } = await planned(await letters('lonely', 1))
    const { deadQueue, ...settings } = await queues.info('orders')
    await queues.delete({ queueName: 'orders', force: true })
    expect(await redrive(['plan', 'error:lonely'])).toMatchObject({
      code: 3,
      out: expect.stringContaining('1  no destination'),
      err: 'bartleby: there is nothing to start; nothing to do: the letter has no destination.',
    })
    expect(await redrive(['start', id, '--watch'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/bartleby: it is paused: .*'orders'.*; go on with: bartleby redrive resume/),
    })
    await queues.create({ ...settings, ...(deadQueue && { deadQueue }) })
  })

  it('is started at once when the number was typed, and not otherwise', async () => {
    const query = await letters('typed', 2)
    const plan = ['plan', query, '--start']
    expect(await redrive(plan)).toMatchObject({
      code: 2,
      err: `bartleby: this will send back 2 letters (${query.replace('error:', '')}); add --yes to go on`,
    })
    expect(await redrive(plan, { isTTY: true, answer: '3' })).toMatchObject({
      code: 1,
      err: 'bartleby: nothing was changed',
    })
    const started = await redrive(plan, { isTTY: true, answer: '2' })
    expect(started).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^started; the server goes on with it\./),
    })
    await settle('orders', 'complete', 2)
  })
})

describe('a redrive', () => {
  it('is watched to its end, and waited for', async () => {
    const { id } = await planned(await letters('watched', 3))
    const watching = redrive(['start', id, '--wait'])
    await settle('orders', 'complete', 3)
    expect(await watching).toMatchObject({
      code: 0,
      out: [
        'Sent 3 letters back to orders: 3 confirmed.',
        '3 planned = 3 sent back + 0 skipped + 0 failed + 0 remaining',
        '3 sent back = 3 confirmed + 0 returned + 0 unconfirmed',
      ].join('\n'),
      err: expect.stringMatching(new RegExp(`^${id} running: `)),
    })
    expect(await done('watch', id)).toContain('3 confirmed')
    expect(await done('list', '--state', 'done')).toMatch(
      new RegExp(`^${id} +done +retry +3 +3 +0 +0 +0 `, 'm'),
    )
    expect(await done('show', id)).toMatch(/\nCourse\n {2}planned +\S+ \S+Z by anyone\n {2}started /)
    expect(await done('show', id, '--letters', 'confirmed')).toMatch(/\nconfirmed +queues +\S+ +orders$/)
    expect(await redrive(['start', id])).toMatchObject({
      code: 1,
      err: expect.stringContaining('it was started by anyone'),
    })
  })

  it('whose letters come back ends with 1', async () => {
    const { id } = await planned(await letters('returning', 2))
    const watching = redrive(['start', id, '--wait'])
    await settle('orders', 'dead', 2)
    expect(await watching).toMatchObject({ code: 1, err: expect.stringMatching(/\nbartleby: 2 returned$/) })
  })

  it('goes on when whoever watches leaves, and obeys', async () => {
    const { id } = await planned(await letters('slow', 20), '--rate', '5')
    let leave = () => {}
    const onInterrupt = (listener: () => void) => {
      leave = listener
    }
    const watching = redrive(['start', id, '--watch'], { onInterrupt })
    await expect.poll(async () => (await standing(id)).counts.sent).toBeGreaterThan(0)
    leave()
    expect(await watching).toMatchObject({
      code: 1,
      err: expect.stringContaining(`bartleby redrive watch ${id}`),
    })
    expect((await standing(id)).state).toBe('running')
    expect(await done('pause', id, '--reason', 'lunch')).toMatch(/^Paused: .*lunch/)
    expect(await redrive(['pause', id])).toMatchObject({
      code: 1,
      err: expect.stringContaining('it is paused'),
    })
    await done('rate', id, '2')
    expect((await standing(id)).rate).toBe(2)
    await done('rate', id, 'none')
    await done('resume', id)
    expect(await done('watch', id)).toContain('20 planned = 20 sent back')
    await settle('orders', 'complete', 20)
  })

  it('that is cancelled ends with 1, and says how many were not touched', async () => {
    const { id } = await planned(await letters('cancelled', 20), '--rate', '5')
    const watching = redrive(['start', id, '--watch'])
    await expect.poll(async () => (await standing(id)).counts.sent).toBeGreaterThan(0)
    await done('cancel', id, '--reason', 'wrong queue')
    const { code, out, err } = await watching
    expect(code).toBe(1)
    expect(out).toMatch(/^Cancelled: .*wrong queue.* not touched\.\n/)
    expect(err).toMatch(/\nbartleby: it was cancelled: .*wrong queue$/)
    await settle('orders', 'complete', (await standing(id)).counts.sent)
  })

  it('is drawn in place on a terminal', async () => {
    const drawn: string[] = []
    const none = () => () => {}
    const screen = {
      columns: 80,
      rows: 24,
      draw: (text: string) => void drawn.push(text),
      onResize: none,
      onKey: none,
    }
    const { id } = await planned(await letters('drawn', 2))
    const { code, out } = await redrive(['start', id, '--watch'], { screen })
    expect([code, out.startsWith('Sent 2 letters')]).toEqual([0, true])
    expect(drawn.some((text) => text.includes('░') || text.includes('▓'))).toBe(true)
    await settle('orders', 'complete', 2)
  })

  it('that there is not ends with 3', async () => {
    expect(await redrive(['show', 'd0sk3v9rkmnc73a1b2cg'])).toMatchObject({
      code: 3,
      err: expect.stringContaining('redrive does not exist'),
    })
  })
})

describe('many letters of `bartleby letters`', () => {
  const act = (args: readonly string[], world: World = {}) =>
    bartleby(['letters', ...args], { env: { BARTLEBY_URL: server.url }, ...world })

  it('are discarded and restored', async () => {
    const query = await letters('discarded', 3)
    const discard = ['discard', '--query', query, '--notes', 'test data']
    expect(await act([...discard, '--dry-run'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Discard 3 letters\.\n[\s\S]*\nnothing was changed$/),
    })
    expect(await act([...discard, '--limit', '2', '--yes'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Discarded 2 letters\.\n/),
      err: expect.stringMatching(/^this will discard 2 letters \(2 letters by name\)\n/),
    })
    const restore = ['restore', '--query', 'status:resolved error:discarded', '--yes', '--json']
    const { code, out } = await act(restore)
    expect([code, JSON.parse(out)]).toMatchObject([
      0,
      { state: 'done', action: 'restore', counts: { sent: 2 } },
    ])
    expect(await act(['retry', '--query', 'error:nosuchthing', '--limit', '5'])).toMatchObject({
      code: 0,
      out: 'no letters match status:pending nosuchthing',
    })
  })
})

it('a store without a server is worked on by the command itself', async () => {
  const place: FreshStore = await freshSqlite()
  const shared = queues
  try {
    const other = await startServer({ store: place.url, testApi: false })
    queues = new QueueClient({ url: other.url })
    await createQueues()
    const query = await letters('stored', 3)
    await other.stop()
    const here = (...args: string[]) => bartleby(['redrive', ...args, '--store', place.url])
    const { id, plannedBy }: RedriveDetail = JSON.parse((await here('plan', query, '--json')).out)
    expect(plannedBy).not.toBe('anyone')
    expect(await here('start', id, '--watch')).toMatchObject({
      code: 0,
      out: expect.stringContaining('3 planned = 3 sent back'),
    })
    expect(await here('start', id)).toMatchObject({ code: 1 })
    expect((await here('list')).out).toContain(id)
  } finally {
    queues = shared
    await place.dispose()
  }
})
