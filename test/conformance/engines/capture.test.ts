/** Contract 2 and 4, `POST /api/dlq`: a failure reported over HTTP becomes a letter, once. */
import { describe, expect, it } from 'vitest'
import { captureBody, type Listed, micros, offices, only, stamp, unique } from './bed.ts'

const LIMIT = 10 * 1_048_576

offices('a capture', (desk) => {
  it('is answered 201 with what lists show', async () => {
    const { status, data } = await desk.api('POST', '/api/dlq', { body: captureBody() })
    expect(status).toBe(201)
    const { rowKey, engine } = data as Listed // the reply of a capture
    expect((await desk.walk({ engine })).find((letter) => letter.rowKey === rowKey)).toEqual(data)
  })

  it('keeps everything it is given', async () => {
    const given = {
      engine: 'provisioning',
      instanceId: 'instance-7',
      originalQueue: 'elsewhere',
      originalMessage: '{"a": 1}',
      errorMessage: 'boom',
      errorClass: 'BoomError',
      errorStack: 'BoomError: boom\n    at a (b.ts:1:2)',
      dequeueCount: 9,
      firstFailureAtUtc: '2026-01-01T00:00:00.000001Z',
      lastFailureAtUtc: '2026-01-02T03:04:05.678901Z',
      correlationId: 'trace/7 with anything \u00e9',
    }
    const letter = await desk.capture({ ...given, headers: { 'x-a': '1', 'X-B': '' } })
    expect(await desk.letter(letter)).toMatchObject({
      ...given,
      status: 'Pending',
      headers: { 'x-a': '1', 'X-B': '' },
    })
  })

  it('fills in what it is not given', async () => {
    const letter = await desk.capture()
    const now = micros(desk.clock.now)
    expect(letter).toMatchObject({
      instanceId: 'publisher',
      originalQueue: 'hmac-rotation-queue',
      dequeueCount: 1,
      firstFailureAtUtc: now,
      lastFailureAtUtc: now,
      status: 'Pending',
      correlationId: expect.stringMatching(/./),
    })
    expect(letter.rowKey).toMatch(/^publisher-\d{8}T\d{24}Z$/)
    expect(letter.rowKey >= `publisher-${stamp(desk.clock.now).replace('Z', '')}`).toBe(true)
  })

  it('refuses null for what may be left out, by its name', async () => {
    const optional = [
      'instanceId',
      'originalQueue',
      'originalMessageEncoding',
      'errorClass',
      'errorStack',
      'headers',
    ]
    const others = ['dequeueCount', 'firstFailureAtUtc', 'lastFailureAtUtc', 'correlationId']
    for (const name of [...optional, ...others])
      await desk.refuses('POST', '/api/dlq', { body: captureBody({ [name]: null }) }, 400, name, 'null')
  })

  it('has a first failure that is its last one when only the last is given', async () => {
    const at = '2026-03-01T00:00:00.000000Z'
    expect(await desk.capture({ lastFailureAtUtc: at })).toMatchObject({
      firstFailureAtUtc: at,
      lastFailureAtUtc: at,
    })
  })

  it('takes times with an offset and cuts what is finer than a microsecond', async () => {
    const letter = await desk.capture({ lastFailureAtUtc: '2026-03-01T02:00:00.123456789+02:00' })
    expect(letter.lastFailureAtUtc).toBe('2026-03-01T00:00:00.123456Z')
  })

  it('takes base64', async () => {
    const letter = await desk.capture({ originalMessage: 'AP8=', originalMessageEncoding: 'base64' })
    expect(await desk.letter(letter)).toMatchObject({
      originalMessage: 'AP8=',
      originalMessageEncoding: 'base64',
    })
  })

  it('is open to every engine of the context, with or without a queue', async () => {
    for (const engine of [
      'provisioning',
      'hmac',
      'tls',
      'spn',
      'update-publisher',
      'alerts',
      'ledger',
      'mute',
      'http',
    ]) {
      expect((await desk.capture({ engine })).engine).toBe(engine)
    }
  })

  describe('with a sourceId that is known', () => {
    it('is answered 200 with the letter when it tells of the same failure, and changes nothing', async () => {
      const body = captureBody({ errorMessage: 'the first' })
      const first = await desk.ok<Listed>('POST', '/api/dlq', { body }, 201)
      const second = await desk.ok<Listed>('POST', '/api/dlq', {
        body: { ...body, correlationId: 'another', originalMessage: 'another' },
      })
      expect(second).toEqual(first)
      expect(await desk.acts(first)).toEqual(['capture'])
    })

    it('is answered 200 with the letter when it tells of another failure, which is on top of it then', async () => {
      const body = captureBody({ errorMessage: 'the first' })
      const first = await desk.ok<Listed>('POST', '/api/dlq', { body }, 201)
      const second = await desk.ok<Listed>('POST', '/api/dlq', {
        body: { ...body, errorMessage: 'the second', originalMessage: 'another' },
      })
      expect(second).toMatchObject({ rowKey: first.rowKey, status: 'Pending', errorMessage: 'the second' })
      const letter = await desk.letter(first)
      expect(letter.originalMessage).toBe(body.originalMessage)
      expect(letter.attempts.map(({ errorMessage }) => errorMessage)).toEqual(['the first', 'the second'])
      expect(await desk.acts(first)).toEqual(['capture', 'capture'])
    })

    it('shows that letter as it is now', async () => {
      const body = captureBody()
      const first = await desk.ok<Listed>('POST', '/api/dlq', { body }, 201)
      await desk.patch(first, 'Resolved', 'done')
      const second = await desk.ok<Listed>('POST', '/api/dlq', { body })
      expect(second).toMatchObject({ rowKey: first.rowKey })
      expect((await desk.letter(first)).status).toBe('Resolved')
    })

    it('makes one letter when 30 arrive at once', async () => {
      const body = captureBody({ instanceId: unique('instance') })
      const replies = await Promise.all(
        Array.from({ length: 30 }, () => desk.api('POST', '/api/dlq', { body })),
      )
      expect(replies.map(({ status }) => status).sort()).toEqual([...Array(29).fill(200), 201])
      const letter = only(await desk.walk({ instanceId: String(body.instanceId) }))
      for (const { data } of replies) expect(data).toMatchObject({ rowKey: letter.rowKey })
      expect(await desk.acts(letter)).toEqual(['capture'])
    })

    it('compares ids exactly', async () => {
      const instanceId = unique('instance')
      const id = unique('Case')
      for (const sourceId of [id, id.toLowerCase(), `${id} `, `${id}\u0301`])
        await desk.capture({ instanceId, sourceId })
      expect(await desk.walk({ instanceId })).toHaveLength(4)
    })
  })

  describe('that is wrong is 400 and names the field', () => {
    const wrong: [field: string, values: unknown[]][] = [
      ['engine', [undefined, null, '', 'nobody', 5, ['hmac'], 'HMAC']],
      ['sourceId', [undefined, null, '', 5, {}]],
      ['originalMessage', [undefined, null, 5, { a: 1 }, ['x']]],
      ['originalMessageEncoding', ['hex', '', 5, 'UTF8', 'base64url']],
      ['errorMessage', [undefined, null, 5, {}]],
      ['errorClass', [5, {}]],
      ['errorStack', [5, ['at a']]],
      ['instanceId', [5, {}, '']],
      ['originalQueue', [5, {}, '']],
      ['correlationId', [5, {}, '']],
      ['dequeueCount', [-1, 1.5, '3', 2 ** 53, 2 ** 31, {}]],
      ['firstFailureAtUtc', ['yesterday', '', 5, '2026-02-30T00:00:00Z', '2026-01-01']],
      ['lastFailureAtUtc', ['yesterday', '', 5, '2026-13-01T00:00:00Z', '0000-01-01T00:00:00Z']],
      ['headers', ['a: b', 5, ['a']]],
    ]

    it.each(wrong)('%s', async (field, values) => {
      for (const value of values) {
        const reply = await desk.api('POST', '/api/dlq', { body: captureBody({ [field]: value }) })
        expect(reply.status, `${field}: ${JSON.stringify(value)}`).toBe(400)
        expect(JSON.stringify(reply.error), JSON.stringify(value)).toContain(field)
      }
    })

    it('a message that is no base64', async () => {
      for (const originalMessage of ['*', 'A', 'AAA=A', 'AA\u00e9A']) {
        const body = captureBody({ originalMessage, originalMessageEncoding: 'base64' })
        await desk.refuses('POST', '/api/dlq', { body }, 400, 'originalMessage')
      }
    })

    it('a first failure after the last', async () => {
      const body = captureBody({
        firstFailureAtUtc: '2026-01-02T00:00:00Z',
        lastFailureAtUtc: '2026-01-01T00:00:00Z',
      })
      await desk.refuses('POST', '/api/dlq', { body }, 400, 'FailureAtUtc')
    })

    it('half a character', async () => {
      for (const field of ['originalMessage', 'sourceId', 'instanceId']) {
        const { status } = await desk.api('POST', '/api/dlq', {
          body: captureBody({ [field]: `${unique('x')}\ud800` }),
        })
        expect([201, 400], field).toContain(status)
      }
    })

    it('NUL where the store cannot keep it', async () => {
      for (const field of ['sourceId', 'instanceId', 'correlationId', 'originalQueue']) {
        const { status } = await desk.api('POST', '/api/dlq', {
          body: captureBody({ [field]: `${unique('x')}\u0000` }),
        })
        expect([201, 400], field).toContain(status)
      }
    })
  })

  describe('of a large body', () => {
    const padded = (size: number) => JSON.stringify(captureBody()).padEnd(size, ' ')

    it('of exactly 10 MiB is taken', async () => {
      await desk.ok('POST', '/api/dlq', { body: padded(LIMIT) }, 201)
    })

    it('of one byte more is 413', async () => {
      await desk.refuses('POST', '/api/dlq', { body: padded(LIMIT + 1) }, 413)
    })

    it('leaves the connection usable', async () => {
      await desk.refuses('POST', '/api/dlq', { body: padded(LIMIT * 2) }, 413)
      await desk.capture()
    })
  })
})
