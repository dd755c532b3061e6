/** Contract 3 and 4, `POST /api/dlq/{engine}/{rowKey}/retry`: back to the queue, byte for byte, once. */
import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { base64, type Desk, type Key, type Listed, offices, only, pathTo, sha256, unique } from './bed.ts'

/** Everything that a call which writes nothing must leave as it is. */
async function everything(desk: Desk, letter: Key, queue: string) {
  return {
    letter: await desk.letter(letter),
    counts: await desk.counts(),
    history: (await desk.history({ limit: 100 })).items,
    items: await desk.queues.items(queue),
    stats: (await desk.queues.stats(queue)).partitions,
  }
}

offices('a retry', (desk) => {
  /** A letter of an HTTP engine whose queue is new. */
  async function letterOn(fields: Record<string, unknown> = {}): Promise<{ letter: Listed; queue: string }> {
    const queue = await desk.queues.queue()
    return { queue, letter: await desk.capture({ originalQueue: queue, ...fields }) }
  }

  it('answers with the id and the queue of the new message, and nothing else', async () => {
    const { letter, queue } = await letterOn()
    const answer = await desk.retry(letter)
    expect(answer).toEqual({ messageId: expect.stringMatching(/^[0-9A-Za-z]{27}$/), queue })
    expect(only(await desk.queues.items(queue)).id).toBe(answer.messageId)
  })

  it('resolves the letter with the note Retried', async () => {
    const { letter } = await letterOn()
    await desk.retry(letter)
    expect(await desk.letter(letter)).toMatchObject({
      status: 'Resolved',
      resolutionNotes: expect.stringContaining('Retried'),
      resolvedBy: expect.stringMatching(/./),
      resolvedAtUtc: expect.any(String),
    })
    expect(await desk.acts(letter)).toEqual(['capture', 'retry'])
  })

  it('keeps the words that came with it', async () => {
    const { letter } = await letterOn()
    await desk.retry(letter, { body: { notes: 'vault is open again' } })
    expect(JSON.stringify(await desk.letter(letter))).toContain('vault is open again')
  })

  it('takes no body, an empty object, or no notes', async () => {
    for (const call of [{}, { body: {} }, { body: { notes: null } }]) {
      const { letter, queue } = await letterOn()
      const reply = await desk.api('POST', pathTo(letter, '/retry'), call)
      expect(reply.status, JSON.stringify([call, reply.error])).toBe(200)
      expect(await desk.queues.items(queue)).toHaveLength(1)
    }
  })

  it('uses the queue of the engine when the letter names none', async () => {
    await desk.queues.queue({ queue_name: 'spn-rotation-queue' })
    const letter = await desk.capture({ engine: 'spn' })
    expect(letter.originalQueue).toBe('spn-rotation-queue')
    expect((await desk.retry(letter)).queue).toBe('spn-rotation-queue')
    expect(await desk.queues.items('spn-rotation-queue')).toHaveLength(1)
  })

  describe('sends the same bytes', () => {
    const overhead = 512
    const payloads: [name: string, bytes: Buffer][] = [
      ['nothing', Buffer.alloc(0)],
      ['one NUL', Buffer.from([0])],
      ['NULs inside', Buffer.from('a\u0000b\u0000')],
      ['all byte values', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
      ['invalid UTF-8', Buffer.from([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80])],
      ['numbers above 2^53', Buffer.from('{"n": 9007199254740993, "f": 1.00, "e": 1E400}')],
      ['duplicate keys', Buffer.from('{"a":1,"a":2,"__proto__":{}}')],
      ['a byte order mark and line ends', Buffer.from('\ufeff{"a":1}\r\n')],
      ['no JSON at all', Buffer.from('<xml/>')],
    ]

    it.each(payloads)('captured as base64: %s', async (_, payload) => {
      const { letter, queue } = await letterOn({
        originalMessage: payload.toString('base64'),
        originalMessageEncoding: 'base64',
      })
      await desk.retry(letter)
      expect(sha256(await leasedBytes(queue))).toBe(sha256(payload))
    })

    it.each(payloads)('from a dead queue: %s', async (_, payload) => {
      const { queue } = await desk.pair()
      await desk.retry(await desk.death(queue, payload))
      expect(sha256(await leasedBytes(queue))).toBe(sha256(payload))
    })

    it('of 10 MiB, less what the envelope of a capture takes, as text', async () => {
      const text = randomBytes(7_864_320 - overhead)
        .toString('base64')
        .slice(0, 10_485_760 - overhead)
      const { letter, queue } = await letterOn({ originalMessage: text })
      await desk.retry(letter)
      expect(sha256(await leasedBytes(queue))).toBe(sha256(text))
      expect(sha256((await desk.letter(letter)).originalMessage)).toBe(sha256(text))
    })

    it('of as much as base64 leaves room for', async () => {
      const payload = randomBytes(Math.floor((10_485_760 - overhead) * 0.75) - 3)
      const { letter, queue } = await letterOn({
        originalMessage: payload.toString('base64'),
        originalMessageEncoding: 'base64',
      })
      await desk.retry(letter)
      expect(sha256(await leasedBytes(queue))).toBe(sha256(payload))
    })

    async function leasedBytes(queue: string): Promise<Buffer> {
      return Buffer.from(only((await desk.queues.lease(queue)).items).bytes ?? '', 'base64')
    }
  })

  it('keeps encoding, kind and reference of a queue item', async () => {
    const { queue } = await desk.pair()
    const item = { encoding: 'e', kind: 'k', reference: 'r\u00e4' }
    await desk.retry(await desk.death(queue, 'x', item))
    expect(only((await desk.queues.lease(queue)).items)).toMatchObject({
      ...item,
      bytes: base64('x'),
      attempts: 1,
    })
  })

  describe('with an edited payload', () => {
    it('sends the new bytes and keeps the old ones in the letter', async () => {
      const { letter, queue } = await letterOn({ originalMessage: '{"amount":"12,5"}' })
      await desk.retry(letter, { body: { payload: '{"amount":"12.5"}', notes: 'comma' } })
      expect(only(await desk.queues.items(queue)).payload).toBe(base64('{"amount":"12.5"}'))
      expect((await desk.letter(letter)).originalMessage).toBe('{"amount":"12,5"}')
    })

    it('may send nothing at all', async () => {
      const { letter, queue } = await letterOn()
      await desk.retry(letter, { body: { payload: '' } })
      expect(only(await desk.queues.items(queue)).payload ?? '').toBe('')
    })

    it.each([
      ['payload', 5],
      ['payload', { a: 1 }],
      ['notes', 5],
      ['notes', ['x']],
    ])('refuses %s: %j', async (name, value) => {
      const { letter, queue } = await letterOn()
      await desk.refuses('POST', pathTo(letter, '/retry'), { body: { [name]: value } }, 400, name)
      expect(await desk.queues.items(queue)).toEqual([])
      expect((await desk.letter(letter)).status).toBe('Pending')
    })

    it('refuses notes of more than 4,000 characters', async () => {
      const { letter } = await letterOn()
      const body = { notes: 'x'.repeat(4001) }
      await desk.refuses('POST', pathTo(letter, '/retry'), { body }, 400, 'notes')
    })

    it('refuses a body over 1 MiB with 413', async () => {
      const { letter, queue } = await letterOn()
      const body = JSON.stringify({ payload: 'x' }).padEnd(1_048_577, ' ')
      await desk.refuses('POST', pathTo(letter, '/retry'), { body }, 413)
      expect(await desk.queues.items(queue)).toEqual([])
      await desk.retry(letter, { body: body.slice(0, 1_048_576) })
    })

    it('refuses what is no JSON', async () => {
      const { letter } = await letterOn()
      for (const body of ['{', '[]', 'null and void']) {
        await desk.refuses('POST', pathTo(letter, '/retry'), { body }, 400)
      }
    })
  })

  describe('is 409', () => {
    it.each(['Resolved', 'Expired'])('when the letter is %s, and names that', async (status) => {
      const { letter, queue } = await letterOn()
      await desk.patch(letter, status, 'over')
      const before = await everything(desk, letter, queue)
      await desk.refuses('POST', pathTo(letter, '/retry'), {}, 409, status)
      expect(await everything(desk, letter, queue)).toEqual(before)
    })

    it('the second time', async () => {
      const { letter, queue } = await letterOn()
      await desk.retry(letter)
      await desk.refuses('POST', pathTo(letter, '/retry'), {}, 409, 'Resolved')
      expect(await desk.queues.items(queue)).toHaveLength(1)
    })

    it('when the engine has no queue and the letter names none', async () => {
      for (const engine of ['update-publisher', 'mute', 'http']) {
        const letter = await desk.capture({ engine })
        expect(letter.originalQueue ?? null).toBeNull()
        const before = await desk.letter(letter)
        await desk.refuses('POST', pathTo(letter, '/retry'), {}, 409)
        expect(await desk.letter(letter)).toEqual(before)
      }
    })

    it('when the queue is gone; the letter is untouched and can be retried once it is back', async () => {
      const { letter, queue } = await letterOn()
      await desk.queues.ok('/v1/queues.delete', { queue_name: queue })
      const before = { letter: await desk.letter(letter), counts: await desk.counts() }
      const history = (await desk.history({ limit: 100 })).items
      await desk.refuses('POST', pathTo(letter, '/retry'), {}, 409, queue)
      await desk.refuses('POST', pathTo(letter, '/retry'), { query: { dryRun: 'true' } }, 409, queue)
      expect({ letter: await desk.letter(letter), counts: await desk.counts() }).toEqual(before)
      expect((await desk.history({ limit: 100 })).items).toEqual(history)
      await desk.queues.queue({ queue_name: queue })
      await desk.retry(letter)
      expect(await desk.queues.items(queue)).toHaveLength(1)
    })

    it('when the original queue of a dead item is gone; it stays in its dead queue', async () => {
      const { queue, dead } = await desk.pair()
      const letter = await desk.death(queue)
      await desk.queues.ok('/v1/queues.delete', { queue_name: queue })
      const before = { letter: await desk.letter(letter), items: await desk.queues.items(dead) }
      await desk.refuses('POST', pathTo(letter, '/retry'), {}, 409, queue)
      expect({ letter: await desk.letter(letter), items: await desk.queues.items(dead) }).toEqual(before)
    })
  })

  describe('with dryRun', () => {
    const dryRun = (letter: Key, body?: object) =>
      desk.ok<Record<string, unknown>>('POST', pathTo(letter, '/retry'), {
        query: { dryRun: 'true' },
        ...(body === undefined ? {} : { body }),
      })

    it('says exactly what would be sent', async () => {
      const { letter, queue } = await letterOn({ originalMessage: 'the very bytes' })
      const shown = JSON.stringify(await dryRun(letter))
      expect(shown).toContain(queue)
      expect(shown).toContain('the very bytes')
      const edited = JSON.stringify(await dryRun(letter, { payload: 'other bytes' }))
      expect(edited).toContain('other bytes')
      expect(edited).not.toContain('the very bytes')
    })

    it('writes nothing: counts, history, letter and queue stay as they were', async () => {
      const { letter, queue } = await letterOn()
      const before = await everything(desk, letter, queue)
      await dryRun(letter)
      await dryRun(letter, { payload: 'edited', notes: 'only looking' })
      expect(await everything(desk, letter, queue)).toEqual(before)
      expect(await desk.queues.items(queue)).toEqual([])
    })

    it('leaves a dead item in its dead queue', async () => {
      const { queue, dead } = await desk.pair()
      const letter = await desk.death(queue)
      const before = [await desk.queues.items(dead), await everything(desk, letter, queue)]
      await dryRun(letter)
      expect([await desk.queues.items(dead), await everything(desk, letter, queue)]).toEqual(before)
    })

    it('is 409 where a retry would be', async () => {
      const { letter } = await letterOn()
      await desk.patch(letter, 'Expired')
      await desk.refuses('POST', pathTo(letter, '/retry'), { query: { dryRun: 'true' } }, 409, 'Expired')
      const mute = await desk.capture({ engine: 'mute' })
      await desk.refuses('POST', pathTo(mute, '/retry'), { query: { dryRun: 'true' } }, 409)
    })

    it('of anything but true or false is 400, and sends nothing', async () => {
      const { letter, queue } = await letterOn()
      for (const value of ['yes', '', '2']) {
        await desk.refuses('POST', pathTo(letter, '/retry'), { query: { dryRun: value } }, 400, 'dryRun')
      }
      expect(await desk.queues.items(queue)).toEqual([])
      await desk.ok('POST', pathTo(letter, '/retry'), { query: { dryRun: 'false' } })
      expect(await desk.queues.items(queue)).toHaveLength(1)
    })
  })

  describe('of many at once', () => {
    it('100 for one letter make one message', async () => {
      const { letter, queue } = await letterOn()
      const replies = await Promise.all(
        Array.from({ length: 100 }, () => desk.api('POST', pathTo(letter, '/retry'))),
      )
      const sent = replies.filter(({ status }) => status === 200)
      expect(sent).toHaveLength(1)
      expect(replies.filter(({ status }) => status === 409)).toHaveLength(99)
      expect(await desk.queues.items(queue)).toHaveLength(1)
      expect(await desk.acts(letter)).toEqual(['capture', 'retry'])
    })

    it('40 letters make 40 messages', async () => {
      const { queue } = await letterOn()
      const letters = await Promise.all(
        Array.from({ length: 40 }, (_, n) =>
          desk.capture({ originalQueue: queue, originalMessage: String(n) }),
        ),
      )
      await Promise.all(letters.map((letter) => desk.retry(letter)))
      expect(await desk.queues.items(queue)).toHaveLength(40)
    })
  })

  it('wakes a lease that waits on the queue', async () => {
    const { letter, queue } = await letterOn({ originalMessage: 'wake up' })
    const waiting = desk.queues.startLease(queue)
    await desk.queues.untilWaiting(queue, 1)
    await desk.retry(letter)
    expect((await waiting.answer).body).toMatchObject({ items: [{ bytes: base64('wake up') }] })
  })
})

offices('a letter that was retried and is restored', (desk) => {
  let queue = ''
  beforeAll(async () => {
    queue = await desk.queues.queue({ queue_name: unique('restored') })
  })

  it('has no message on its way any more, and can be retried once more', async () => {
    const letter = await desk.capture({ originalQueue: queue })
    await desk.retry(letter)
    await desk.patch(letter, 'Pending', 'not yet')
    expect(await desk.queues.items(queue)).toEqual([])
    expect((await desk.letter(letter)).status).toBe('Pending')
    await desk.retry(letter)
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.complete(queue, [id])
    expect(await desk.acts(letter)).toEqual(['capture', 'retry', 'restore', 'retry', 'confirm'])
  })

  it('is 409 while somebody works on its message', async () => {
    const letter = await desk.capture({ originalQueue: queue })
    await desk.retry(letter)
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.refuses('PATCH', pathTo(letter), { body: { status: 'Pending' } }, 409, queue)
    expect((await desk.letter(letter)).status).toBe('Resolved')
    await desk.queues.complete(queue, [id])
  })

  it('can be restored after its message was completed', async () => {
    const letter = await desk.capture({ originalQueue: queue })
    await desk.retry(letter)
    await desk.queues.complete(queue, [only((await desk.queues.lease(queue)).items).id])
    await desk.patch(letter, 'Pending', 'once more')
    expect((await desk.letter(letter)).status).toBe('Pending')
    expect(await desk.queues.items(queue)).toEqual([])
  })
})
