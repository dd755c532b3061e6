import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PostedOutbox } from '../../../../test/world/outbox-post.ts'
import { freshSqlite } from '../../../../test/world/stores.ts'
import type { Layout } from '../table/layout.ts'
import type { OutboxHandle } from './outbox-handle.ts'
import { OutboxReadings } from './readings.ts'

describe('what is read about outboxes', () => {
  let outbox: PostedOutbox
  let looks: number
  let steadyMs: number

  beforeEach(async () => {
    outbox = await PostedOutbox.open({ name: 'sqlite', fresh: freshSqlite })
    looks = 0
    steadyMs = 0
  })
  afterEach(() => outbox.close())

  /** An outbox that takes so long to be looked at, by the steady clock. */
  const slow = (ms: number): Partial<OutboxHandle> => ({
    layout: async () => {
      looks += 1
      steadyMs += ms
      return outbox.layout
    },
  })
  const readingsOf = (...posts: OutboxHandle[]) =>
    new OutboxReadings(
      () => posts,
      outbox.clock,
      () => steadyMs,
    )
  const backlogs = async (readings: OutboxReadings) =>
    (await readings.read()).map(({ looked }) => (looked.ok ? looked.backlog.backlog : null))

  it('is read anew each time when that takes no time', async () => {
    const readings = readingsOf(outbox.post(slow(0)))
    expect(await backlogs(readings)).toEqual([0])
    await outbox.insert({})
    expect(await backlogs(readings)).toEqual([1])
  })

  it('is used for twenty times as long as it took to read', async () => {
    const readings = readingsOf(outbox.post(slow(100)))
    expect(await backlogs(readings)).toEqual([0])
    await outbox.insert({})
    steadyMs += 1_999
    expect(await backlogs(readings)).toEqual([0])
    steadyMs += 1
    expect(await backlogs(readings)).toEqual([1])
    expect(looks).toBe(2)
  })

  it('is used for ten seconds at most', async () => {
    const readings = readingsOf(outbox.post(slow(5_000)))
    await readings.read()
    steadyMs += 10_000
    await readings.read()
    expect(looks).toBe(2)
  })

  it('is read once for all who ask at the same time', async () => {
    const readings = readingsOf(outbox.post(slow(0)))
    await Promise.all([readings.read(), readings.read(), readings.read()])
    expect(looks).toBe(1)
  })

  it('has the meter as it is now, and a verdict', async () => {
    const post = outbox.post({ ...slow(100), name: 'first' })
    const readings = readingsOf(post, outbox.post({ name: 'second' }))
    await readings.read()
    for (let n = 0; n < 30; n++) post.meter.failed(0.1)
    expect(await readings.read()).toMatchObject([
      { outbox: 'first', meter: { failures: 30 }, health: { status: 'unhealthy' } },
      { outbox: 'second', meter: { failures: 0 }, health: { status: 'ok' } },
    ])
  })

  it('says of an outbox that is slow what was known of it before, or that it is slow', async () => {
    const answers: PromiseWithResolvers<Layout>[] = []
    const post = outbox.post({
      layout: () => {
        const answer = Promise.withResolvers<Layout>()
        answers.push(answer)
        return answer.promise
      },
    })
    const readings = readingsOf(post, outbox.post({ name: 'quick' }))
    const impatient = () => readings.read({ patienceMs: 5 })
    expect(await impatient()).toMatchObject([
      {
        looked: {
          trouble: { what: 'its database is slow to answer', detail: 'no answer within 5 ms' },
        },
        health: { status: 'unhealthy' },
      },
      { outbox: 'quick', health: { status: 'ok' } },
    ])
    answers[0]?.resolve(outbox.layout)
    expect(await readings.read()).toMatchObject([{ looked: { ok: true } }, { looked: { ok: true } }])
    steadyMs += 59_999
    expect(await impatient()).toMatchObject([{ looked: { ok: true } }, { looked: { ok: true } }])
    steadyMs += 1
    expect(await impatient()).toMatchObject([{ looked: { ok: false } }, { looked: { ok: true } }])
    expect(answers).toHaveLength(2)
    answers[1]?.resolve(outbox.layout)
  })
})
