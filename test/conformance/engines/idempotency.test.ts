/** Contract 4: a call with an `Idempotency-Key` that was seen in the last 24 hours gives the first answer again. */
import { describe, expect, it } from 'vitest'
import { hours, us } from '../../world/time.ts'
import { captureBody, type Desk, type Listed, offices, only, pathTo, type Reply, unique } from './bed.ts'

const keyed = (key: string) => ({ 'idempotency-key': key })

const answer = ({ status, data, error }: Reply) => ({ status, data, error })

async function letterOn(desk: Desk): Promise<{ letter: Listed; queue: string }> {
  const queue = await desk.queues.queue()
  return { queue, letter: await desk.capture({ originalQueue: queue, instanceId: unique('instance') }) }
}

offices('an idempotency key', (desk) => {
  it('gives the answer of a retry again; one message is sent', async () => {
    const { letter, queue } = await letterOn(desk)
    const call = { headers: keyed(unique('key')) }
    const first = await desk.api('POST', pathTo(letter, '/retry'), call)
    expect(first.status).toBe(200)
    await desk.clock.advance(hours(23))
    expect(answer(await desk.api('POST', pathTo(letter, '/retry'), call))).toEqual(answer(first))
    expect(await desk.queues.items(queue)).toHaveLength(1)
    expect(await desk.acts(letter)).toEqual(['capture', 'retry'])
  })

  it('gives the answer of a patch again; one act is recorded', async () => {
    const { letter } = await letterOn(desk)
    const call = { body: { status: 'Resolved', resolutionNotes: 'once' }, headers: keyed(unique('key')) }
    const first = await desk.api('PATCH', pathTo(letter), call)
    expect(first.status).toBe(200)
    expect(answer(await desk.api('PATCH', pathTo(letter), call))).toEqual(answer(first))
    expect(await desk.acts(letter)).toEqual(['capture', 'discard'])
  })

  it('gives the answer of a capture again: 201, not 200', async () => {
    const call = { body: captureBody(), headers: keyed(unique('key')) }
    const first = await desk.api('POST', '/api/dlq', call)
    expect(first.status).toBe(201)
    expect(answer(await desk.api('POST', '/api/dlq', call))).toEqual(answer(first))
  })

  it('gives the first answer also when things have changed since', async () => {
    const { letter } = await letterOn(desk)
    const call = { body: { status: 'Resolved', resolutionNotes: 'once' }, headers: keyed(unique('key')) }
    const first = await desk.api('PATCH', pathTo(letter), call)
    await desk.patch(letter, 'Pending')
    expect(answer(await desk.api('PATCH', pathTo(letter), call))).toEqual(answer(first))
    expect((await desk.letter(letter)).status).toBe('Pending')
  })

  it('gives every reply an envelope of its own', async () => {
    const { letter } = await letterOn(desk)
    const headers = { ...keyed(unique('key')), 'x-correlation-id': 'first' }
    await desk.api('POST', pathTo(letter, '/retry'), { headers })
    const again = await desk.api('POST', pathTo(letter, '/retry'), {
      headers: { ...headers, 'x-correlation-id': 'second' },
    })
    expect(again.correlationId).toBe('second')
  })

  it('is forgotten after a day', async () => {
    const { letter } = await letterOn(desk)
    const call = { body: { status: 'Expired' }, headers: keyed(unique('key')) }
    await desk.ok('PATCH', pathTo(letter), call)
    await desk.clock.advance(hours(24) + us(1))
    await desk.refuses('PATCH', pathTo(letter), call, 409, 'Expired')
  })

  it('of another call is another key', async () => {
    const key = unique('key')
    const one = await letterOn(desk)
    const two = await letterOn(desk)
    await desk.retry(one.letter, { headers: keyed(key) })
    expect((await desk.retry(two.letter, { headers: keyed(key) })).queue).toBe(two.queue)
    expect(await desk.queues.items(two.queue)).toHaveLength(1)
  })

  it('does not save a call that was refused for its form', async () => {
    const { letter, queue } = await letterOn(desk)
    const headers = keyed(unique('key'))
    await desk.refuses('POST', pathTo(letter, '/retry'), { headers, body: { payload: 5 } }, 400)
    await desk.retry(letter, { headers })
    expect(await desk.queues.items(queue)).toHaveLength(1)
  })

  it.each(['', ' ', 'x'.repeat(10_000)])('that is no key is refused by name: %j', async (key) => {
    const { letter, queue } = await letterOn(desk)
    // Blanks around a header's value are no part of it.
    await desk.refuses('POST', pathTo(letter, '/retry'), { headers: keyed(key) }, 400, 'Idempotency-Key')
    expect(await desk.queues.items(queue)).toEqual([])
  })

  describe('in 100 calls at once', () => {
    it('of a retry sends one message and answers all the same', async () => {
      const { letter, queue } = await letterOn(desk)
      const call = { headers: keyed(unique('key')) }
      const replies = await Promise.all(
        Array.from({ length: 100 }, () => desk.api('POST', pathTo(letter, '/retry'), call)),
      )
      const first = answer(replies[0] ?? expect.fail('a hundred were sent'))
      expect(first.status).toBe(200)
      for (const reply of replies) expect(answer(reply)).toEqual(first)
      expect(only(await desk.queues.items(queue)).id).toBe((first.data as { messageId: string }).messageId)
      expect(await desk.acts(letter)).toEqual(['capture', 'retry'])
    })

    it('of a capture makes one letter', async () => {
      const instanceId = unique('instance')
      const call = { body: captureBody({ instanceId }), headers: keyed(unique('key')) }
      const replies = await Promise.all(Array.from({ length: 100 }, () => desk.api('POST', '/api/dlq', call)))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]))
      expect(await desk.walk({ instanceId })).toHaveLength(1)
    })

    it('of a patch makes one change', async () => {
      const { letter } = await letterOn(desk)
      const call = { body: { status: 'Resolved', resolutionNotes: 'x' }, headers: keyed(unique('key')) }
      const replies = await Promise.all(
        Array.from({ length: 100 }, () => desk.api('PATCH', pathTo(letter), call)),
      )
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
      expect(await desk.acts(letter)).toEqual(['capture', 'discard'])
    })
  })
})
