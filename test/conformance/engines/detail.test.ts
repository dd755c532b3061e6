/** Contract 3 and 4, `GET /api/dlq/{engine}/{rowKey}`: everything about one letter. */
import { expect, it } from 'vitest'
import { keysOf } from '../../world/row-keys.ts'
import { us } from '../../world/time.ts'
import { type Desk, type Detail, type Key, micros, offices, only, pathTo, stamp, unique } from './bed.ts'

offices('one letter', (desk) => {
  it('shows what its list item shows, the message, the error and the whole story', async () => {
    const letter = await desk.capture({
      engine: 'tls',
      instanceId: 'i-1',
      originalMessage: '{"cert": 1}',
      errorMessage: 'no route',
      errorClass: 'RouteError',
      errorStack: 'RouteError: no route\n    at renew (tls.ts:1:1)',
      dequeueCount: 3,
    })
    const detail = await desk.letter(letter)
    expect(detail).toMatchObject({
      ...letter,
      originalMessage: '{"cert": 1}',
      errorMessage: 'no route',
      errorClass: 'RouteError',
      errorStack: expect.stringContaining('tls.ts:1:1'),
    })
    expect(detail.confirmedAtUtc ?? null).toBeNull()
    expect(detail.originalMessageEncoding ?? 'utf8').toBe('utf8')
    expect(detail.attempts).toBeInstanceOf(Array)
    expect(await desk.acts(letter)).toEqual(['capture'])
  })

  it.each([
    ['UTF-8 beyond ASCII', Buffer.from('gr\u00fc\u00dfe \u{1f4ee}')],
    ['nothing', Buffer.alloc(0)],
    ['a number above 2^53', Buffer.from('{"n":9007199254740993}')],
    ['duplicate keys and odd spacing', Buffer.from('{"a":1 ,\t"a":2, "b":NaN}')],
    ['control characters and NUL', Buffer.from('a\u0000\u0001\u001f\u007fb')],
    ['a byte order mark', Buffer.from('\ufeff{}')],
  ])('gives its message as text: %s', async (_, payload) => {
    const letter = await desk.capture({
      originalMessage: payload.toString('base64'),
      originalMessageEncoding: 'base64',
    })
    const detail = await desk.letter(letter)
    expect(detail.originalMessageEncoding ?? 'utf8').toBe('utf8')
    expect(Buffer.from(detail.originalMessage)).toEqual(payload)
  })

  it.each([
    ['a lone continuation byte', Buffer.from([0x80])],
    ['a surrogate', Buffer.from([0xed, 0xa0, 0x80])],
    ['an overlong form', Buffer.from([0xc0, 0xaf])],
    ['text that breaks off', Buffer.concat([Buffer.from('text '), Buffer.from([0xe2, 0x82])])],
    ['all bytes', Buffer.from(Array.from({ length: 256 }, (__, byte) => byte))],
  ])('gives its message as base64 when it is no UTF-8: %s', async (_, payload) => {
    const letter = await desk.capture({
      originalMessage: payload.toString('base64'),
      originalMessageEncoding: 'base64',
    })
    const detail = await desk.letter(letter)
    expect(detail.originalMessageEncoding).toBe('base64')
    expect(Buffer.from(detail.originalMessage, 'base64')).toEqual(payload)
  })

  it('shows its headers', async () => {
    const headers = { 'x-trace': 'abc', retries: '3' }
    expect(await desk.letter(await desk.capture({ headers }))).toMatchObject({ headers })
  })

  it('has a history with every act, each once', async () => {
    const letter = await desk.capture()
    await desk.patch(letter, 'Resolved', 'no')
    await desk.patch(letter, 'Pending', 'yes after all')
    await desk.patch(letter, 'Expired', 'too old')
    await desk.patch(letter, 'Pending')
    await desk.patch(letter, 'Resolved', 'no again')
    expect(await desk.acts(letter)).toEqual(['capture', 'discard', 'restore', 'expire', 'restore', 'discard'])
    const { history } = await desk.letter(letter)
    for (const { rowKey, operation } of history) {
      const entry = await desk.ok('GET', `/api/history/${letter.engine}/${encodeURIComponent(rowKey)}`)
      expect(entry).toMatchObject({
        operation,
        correlationId: letter.correlationId,
        instanceId: letter.instanceId,
      })
    }
    expect(new Set(history.map(({ rowKey }) => rowKey)).size).toBe(6)
  })

  it('that nobody has: 404', async () => {
    const missing: Key[] = [
      { engine: 'hmac', rowKey: `publisher-${stamp(desk.clock.now - us(1))}` },
      { engine: 'hmac', rowKey: 'nothing' },
      { engine: 'hmac', rowKey: '-' },
      { engine: 'hmac', rowKey: '\u0000' },
      { engine: 'hmac', rowKey: `x-99999999T999999999999Z` },
      { engine: 'queues', rowKey: `x-${stamp(desk.clock.now)}` },
      { engine: 'hmac', rowKey: `${'x'.repeat(2000)}-${stamp(desk.clock.now)}` },
    ]
    for (const key of missing) {
      await desk.refuses('GET', pathTo(key), {}, 404)
      await desk.refuses('PATCH', pathTo(key), { body: { status: 'Resolved', resolutionNotes: 'x' } }, 404)
      await desk.refuses('POST', pathTo(key, '/retry'), {}, 404)
    }
  })

  it('is not found under another engine', async () => {
    const { rowKey } = await desk.capture({ engine: 'hmac', instanceId: unique('instance') })
    await desk.refuses('GET', pathTo({ engine: 'tls', rowKey }), {}, 404)
  })

  it('of an engine that nobody knows: 400, with those that are known', async () => {
    await desk.refuses('GET', pathTo({ engine: 'nobody', rowKey: 'x' }), {}, 400, 'nobody', 'hmac', 'queues')
    await desk.refuses('POST', pathTo({ engine: 'nobody', rowKey: 'x' }, '/retry'), {}, 400, 'hmac')
    const body = { status: 'Pending' }
    await desk.refuses('PATCH', pathTo({ engine: 'nobody', rowKey: 'x' }), { body }, 400, 'hmac')
  })
})

offices('the row key', (desk) => {
  it('is the instance and the time of capture', async () => {
    const letter = await desk.capture({ engine: 'spn', instanceId: 'alpha' })
    expect(letter.rowKey).toMatch(keysOf('alpha', stamp(desk.clock.now)))
  })

  it('takes the next microsecond when it clashes, and has the number of its letter behind it', async () => {
    const at = desk.clock.now
    const keys = await captures(desk, 3, { engine: 'provisioning', instanceId: 'beta' })
    const expected = [0n, 1n, 2n].map((later) => keysOf('beta', stamp(at + later)))
    expect(keys.sort()).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
  })

  it('is of one engine', async () => {
    const one = await desk.capture({ engine: 'hmac', instanceId: 'gamma', errorMessage: 'one' })
    const two = await desk.capture({ engine: 'tls', instanceId: 'gamma', errorMessage: 'two' })
    expect((await desk.letter(one)).errorMessage).toBe('one')
    expect((await desk.letter(two)).errorMessage).toBe('two')
    await desk.refuses('GET', pathTo({ engine: 'tls', rowKey: one.rowKey }), {}, 404)
  })

  it('is unique also when many are captured at once', async () => {
    const keys = await captures(desk, 40, { instanceId: 'delta' })
    expect(new Set(keys).size).toBe(40)
  })

  it('has percent signs for what Azure forbids; the instance keeps what it has', async () => {
    const instanceId = 'a/b\\c#d?e\u0001f'
    const letter = await desk.capture({ instanceId })
    expect(letter.instanceId).toBe(instanceId)
    expect(letter.rowKey).toMatch(keysOf('a%2Fb%5Cc%23d%3Fe%01f', stamp(desk.clock.now)))
    expect(await desk.letter(letter)).toMatchObject({ instanceId })
    expect(only((await desk.list({ instanceId })).items).rowKey).toBe(letter.rowKey)
  })

  it('finds its own letter when another instance looks like it in percent signs', async () => {
    const odd = ['x/y', 'x%2Fy', 'x%252Fy', 'x y', 'x%20y', 'x-y', '\u00e9', '%', '%%', 'x+y']
    const letters = await Promise.all(odd.map((instanceId) => desk.capture({ engine: 'alerts', instanceId })))
    expect(new Set(letters.map(({ rowKey }) => rowKey)).size).toBe(odd.length)
    const found = await Promise.all(letters.map((letter) => desk.letter(letter)))
    expect(found.map(({ instanceId }) => instanceId)).toEqual(odd)
  })

  it('of an instance that ends like a row key finds the right letter', async () => {
    const inner = await desk.capture({ engine: 'ledger', instanceId: 'z' })
    const outer = await desk.capture({ engine: 'ledger', instanceId: inner.rowKey })
    expect((await desk.letter(inner)).instanceId).toBe('z')
    expect((await desk.letter(outer)).instanceId).toBe(inner.rowKey)
  })

  it('of a queue letter is the id with which the item died, and the time', async () => {
    const { queue } = await desk.pair()
    await desk.queues.produce(queue, 'x')
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    const letter = await desk.letterOf(queue, id)
    expect(letter.rowKey).toMatch(keysOf(id, stamp(desk.clock.now)))
    const detail: Detail = await desk.letter(letter)
    expect(detail).toMatchObject({
      engine: 'queues',
      source: 'queues',
      originalQueue: queue,
      originalMessage: 'x',
    })
    expect(detail.lastFailureAtUtc).toBe(micros(desk.clock.now))
  })

  it('lets odd queue items be found again', async () => {
    const { queue } = await desk.pair()
    const item = { kind: 'k\u0000', encoding: '\u00e9/', reference: 'r\u0000#?' }
    const letter = await desk.death(queue, Buffer.from([0xff, 0x00]), item)
    expect(await desk.letter(letter)).toMatchObject({
      originalMessage: '/wA=',
      originalMessageEncoding: 'base64',
    })
    const { messageId } = await desk.retry(letter)
    expect(only(await desk.queues.items(queue))).toMatchObject({
      ...item,
      id: messageId,
      payload: base64Of([0xff, 0]),
    })
  })
})

const base64Of = (bytes: number[]): string => Buffer.from(bytes).toString('base64')

async function captures(desk: Desk, count: number, fields: Record<string, string>): Promise<string[]> {
  const letters = await Promise.all(Array.from({ length: count }, () => desk.capture(fields)))
  return letters.map(({ rowKey }) => rowKey)
}
