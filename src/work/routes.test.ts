/** `/api/runs`, and the call that answers with a run when it takes long. The office of the caller carries none out: time decides when. */

import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../test/world/documented.ts'
import { type FreshStore, stores } from '../../test/world/stores.ts'
import { serveApi } from '../api/calls.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { gate } from '../http/gate.ts'
import { letterCalls } from '../letters/routes.ts'
import { Office } from '../office.ts'
import { runCalls } from './routes.ts'

const DAY_US = 86_400_000_000n
const token = (name: string, role: 'viewer' | 'operator') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

describe.each(stores)('/api/runs on $name', (kind) => {
  let place: FreshStore
  let office: Office
  let app: FastifyInstance
  const clock = new TestClock()

  beforeAll(async () => {
    place = await kind.fresh()
    clock.freeze(instant(1_800_000_000_000_000n))
    office = await Office.open({ store: place.url, clock, carriesOutRedrives: false })
    app = Fastify({ exposeHeadRoutes: false })
    insistOnDocumentedStatuses(app)
    app.addHook('onRequest', gate([token('nell', 'operator'), token('guest', 'viewer')], clock))
    const scope = { clock, stopping: () => false }
    const once = office.letters.once.bind(office.letters)
    serveApi(app, scope, [...letterCalls(office.letters, clock), ...runCalls(office.runs, once)])
  })
  afterAll(async () => {
    await app?.close()
    await office?.close()
    await place?.dispose()
  })

  const call = async (
    method: 'GET' | 'POST',
    url: string,
    { body, key, by = 'nell' }: { body?: object; key?: string; by?: string } = {},
  ) => {
    const headers = {
      authorization: `Bearer ${by}`,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    }
    const reply = await app.inject({ method, url, headers, ...(body === undefined ? {} : { payload: body }) })
    const { data, error } = reply.json()
    return { status: reply.statusCode, data, code: error?.code }
  }

  /** Lets so much time pass again and again while `work` goes on; not faster than a store answers, or days would go by. */
  const meanwhile = async <T>(work: Promise<T>, seconds: bigint): Promise<T> => {
    let isOver = false
    const watched = work.finally(() => {
      isOver = true
    })
    while (!isOver) {
      clock.advance(seconds * 1_000_000n)
      await pause(5)
    }
    return watched
  }

  const letterOf = (sourceId: string) =>
    office.letters.capture({
      engine: 'hmac',
      sourceId,
      originalMessage: '{}',
      errorMessage: 'no',
      originalQueue: 'hmac',
    })

  /** Another office of the store does all that is left. */
  const carryOut = async () => {
    const other = await Office.open({ store: place.url, clock })
    // Time goes on: what another run on this store waits for may come first.
    await meanwhile(other.runs.settle(), 1n)
    await other.close()
  }

  it('shows the run of an expiry that takes longer than half a minute, and its end', async () => {
    for (const name of ['A', 'B', 'C']) await letterOf(name)
    clock.advance(2n * DAY_US)
    const body = { olderThanDays: 1 }
    const asked = await meanwhile(call('POST', '/api/dlq/expire', { body, key: 'once' }), 5n)
    expect(asked).toMatchObject({
      status: 202,
      data: { kind: 'expire', state: 'running', startedBy: 'nell' },
    })
    const { id } = asked.data
    expect(await call('GET', `/api/runs/${id}`, { by: 'guest' })).toMatchObject({
      status: 200,
      data: { id, state: 'running', counts: { expected: null, done: 0 }, isHeld: false },
    })
    await carryOut()
    expect((await call('GET', `/api/runs/${id}`)).data).toMatchObject({ state: 'done', counts: { done: 3 } })
    // The same key is of the same run.
    expect(await meanwhile(call('POST', '/api/dlq/expire', { body, key: 'once' }), 1n)).toMatchObject({
      status: 200,
      data: { expired: 3 },
    })
    expect((await call('GET', '/api/runs?kind=expire&state=done')).data.items).toMatchObject([{ id }])
  })

  it('pauses, resumes and cancels', async () => {
    await letterOf('D')
    clock.advance(2n * DAY_US)
    const { data } = await meanwhile(call('POST', '/api/dlq/expire', { body: { olderThanDays: 1 } }), 5n)
    const steer = (verb: string, body?: object) =>
      call('POST', `/api/runs/${data.id}/${verb}`, body === undefined ? {} : { body })
    expect(await steer('pause', { reason: 'too early' })).toMatchObject({
      status: 200,
      data: { state: 'paused', note: 'too early' },
    })
    await carryOut()
    expect((await call('GET', `/api/runs/${data.id}`)).data).toMatchObject({
      state: 'paused',
      counts: { done: 0 },
    })
    expect(await steer('pause')).toMatchObject({ status: 409, code: 'run_state_wrong' })
    expect(await steer('resume', { reason: 'no' })).toMatchObject({ status: 400, code: 'parameter_invalid' })
    expect(await steer('resume')).toMatchObject({ status: 200, data: { state: 'running', note: null } })
    expect(await steer('cancel')).toMatchObject({
      status: 200,
      data: { state: 'cancelled', note: 'by nell' },
    })
    const acts = (await office.history.list({ correlationId: data.id })).items.map(
      ({ operation }) => operation,
    )
    expect(acts.sort()).toEqual(['run.cancel', 'run.pause', 'run.resume'])
  })

  it('has pages, and refuses what it does not know', async () => {
    // Rounds of the other office may have come due meanwhile.
    const page = '/api/runs?kind=expire&limit=1'
    const first = (await call('GET', page)).data
    const second = (await call('GET', `${page}&continuationToken=${first.continuationToken}`)).data
    expect([first.items.length, second.items.length, second.continuationToken]).toEqual([1, 1, null])
    expect(first.items[0].id > second.items[0].id).toBe(true)
    expect(await call('GET', '/api/runs?state=asleep')).toMatchObject({
      status: 400,
      code: 'parameter_invalid',
    })
    expect(await call('GET', '/api/runs/nothing')).toMatchObject({ status: 404, code: 'run_unknown' })
    expect(await call('POST', '/api/runs/nothing/cancel')).toMatchObject({ status: 404, code: 'run_unknown' })
    expect(await call('POST', '/api/runs/nothing/cancel', { by: 'guest' })).toMatchObject({ status: 403 })
  })
})
