/** A write that fails is never answered with success, changes nothing, and can be made again. */
import { expect, it } from 'vitest'
import { type Call, captureBody, type Desk, offices, only, pathTo, unique } from './bed.ts'

/** Runs `body` while no write to the store succeeds. */
async function refusing(desk: Desk, body: () => Promise<void>): Promise<void> {
  await desk.queues.place.refuseWrites()
  try {
    await body()
  } finally {
    await desk.queues.place.acceptWrites()
  }
}

/** The call fails on the server's side, in the envelope, without a word about the cause. */
async function fails(desk: Desk, method: 'POST' | 'PATCH', path: string, call: Call = {}): Promise<void> {
  const { status, error } = await desk.api(method, path, call)
  expect([500, 503], `${method} ${path}`).toContain(status)
  expect(JSON.stringify(error)).not.toContain('no space left')
}

offices(
  'a store that refuses writes',
  (desk) => {
    it('makes a capture fail; no letter is there, and the same report is taken later', async () => {
      const body = captureBody({ instanceId: unique('instance') })
      await refusing(desk, () => fails(desk, 'POST', '/api/dlq', { body }))
      expect(await desk.walk({ instanceId: String(body.instanceId) })).toEqual([])
      await desk.ok('POST', '/api/dlq', { body }, 201)
    })

    it('makes a retry fail; the letter stays pending and nothing is sent', async () => {
      const queue = await desk.queues.queue()
      const letter = await desk.capture({ originalQueue: queue })
      const before = [await desk.letter(letter), await desk.counts()]
      const headers = { 'idempotency-key': unique('key') }
      await refusing(desk, () => fails(desk, 'POST', pathTo(letter, '/retry'), { headers }))
      expect([await desk.letter(letter), await desk.counts()]).toEqual(before)
      expect(await desk.queues.items(queue)).toEqual([])
      await desk.retry(letter, { headers })
      expect(await desk.queues.items(queue)).toHaveLength(1)
    })

    it('makes a change of status fail; a dead letter stays where it lies', async () => {
      const { queue, dead } = await desk.pair()
      const letter = await desk.death(queue)
      const before = [await desk.letter(letter), await desk.counts(), await desk.queues.items(dead)]
      const call = { body: { status: 'Resolved', resolutionNotes: 'x' } }
      await refusing(desk, () => fails(desk, 'PATCH', pathTo(letter), call))
      expect([await desk.letter(letter), await desk.counts(), await desk.queues.items(dead)]).toEqual(before)
      await desk.ok('PATCH', pathTo(letter), call)
    })

    it('makes the completion of a retried item fail; the letter is not confirmed', async () => {
      const queue = await desk.queues.queue()
      const letter = await desk.capture({ originalQueue: queue })
      await desk.retry(letter)
      const { id } = only((await desk.queues.lease(queue)).items)
      const body = { queue_name: queue, request_timeout: '1m', ids: [id] }
      await refusing(desk, () =>
        desk.queues.refuses('/v1/queue.complete', body, 'internal error, try your request again', 454),
      )
      expect((await desk.letter(letter)).confirmedAtUtc ?? null).toBeNull()
      await desk.queues.complete(queue, [id])
      expect((await desk.letter(letter)).confirmedAtUtc).toEqual(expect.any(String))
    })

    it('makes a death fail; there is no letter and the item stays leased', async () => {
      const { queue } = await desk.pair()
      await desk.queues.produce(queue, 'x')
      const { id } = only((await desk.queues.lease(queue)).items)
      const body = { queue_name: queue, items: [{ id, dead: true }] }
      await refusing(desk, () =>
        desk.queues.refuses('/v1/queue.retry', body, 'internal error, try your request again', 454),
      )
      expect(await desk.walk({ originalQueue: queue })).toEqual([])
      expect(only(await desk.queues.items(queue))).toMatchObject({ id, is_leased: true })
      await desk.queues.retry(queue, [{ id, dead: true }])
      expect(await desk.walk({ originalQueue: queue })).toHaveLength(1)
    })

    it('makes records and expiries fail, while lists, counts and dry runs go on', async () => {
      const queue = await desk.queues.queue()
      const letter = await desk.capture({ originalQueue: queue, lastFailureAtUtc: '2026-10-20T00:00:00Z' })
      const entry = { engine: 'hmac', operation: 'rotate', status: 'Succeeded', durationMs: 1 }
      await refusing(desk, async () => {
        await fails(desk, 'POST', '/api/history', { body: { ...entry, correlationId: 'refused' } })
        await fails(desk, 'POST', '/api/dlq/expire', { body: { olderThanDays: 1 } })
        await desk.list()
        await desk.counts()
        await desk.letter(letter)
        await desk.ok('POST', pathTo(letter, '/retry'), { query: { dryRun: 'true' } })
      })
      expect((await desk.history({ correlationId: 'refused' })).items).toEqual([])
      expect((await desk.letter(letter)).status).toBe('Pending')
    })
  },
  { liveClock: true },
)
