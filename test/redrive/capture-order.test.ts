/** Letters of one key go back in the order in which they died, whatever numbers they have. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseRowKey } from '../../src/core/row-key.ts'
import type { FailedRun } from '../../src/queues/queue.ts'
import { RedriveOffice } from '../world/redrive-office.ts'
import { reportOf } from '../world/report.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

const QUEUE = 'work'
const NAMES = ['first', 'second', 'third', 'fourth', 'fifth']

const run: FailedRun = {
  ...{ engine: 'hmac', operation: 'rotate', instanceId: 'k', correlationId: 'c', actor: 'worker' },
  ...{ durationMs: 5, input: null, output: null, errorClass: 'E', errorMessage: 'no', errorStack: null },
}

describe.each(stores)('letters of one key on $name', (kind) => {
  let desk: RedriveOffice

  beforeEach(async () => {
    desk = await RedriveOffice.open(kind)
    await desk.office.queues.create({
      queueName: QUEUE,
      leaseTimeout: '1h',
      expireTimeout: '24h',
      requestedPartitions: 1,
      maxAttempts: 10,
    })
    const items = NAMES.map((payload) => ({ payload }))
    await desk.office.queues.produce({ queueName: QUEUE, items, requestTimeout: '1m' })
  })
  afterEach(() => desk.close())

  /** What can be leased, by name. */
  const lease = async () => {
    const { partition, items } = await desk.office.queues.lease({
      ...{ queueName: QUEUE, clientId: 'worker', batchSize: NAMES.length, requestTimeout: '1s' },
    })
    return { partition, ids: new Map(items.map(({ id, payload }) => [Buffer.from(payload).toString(), id])) }
  }

  type Leased = Awaited<ReturnType<typeof lease>>
  const fail = ({ partition, ids }: Leased, names: readonly string[], dead: boolean) =>
    desk.office.queues.retry({
      queueName: QUEUE,
      partition,
      items: names.map((name) => ({ id: ids.get(name) ?? '', dead, run })),
    })

  /** Those that failed once are leased again. */
  const failOnce = async (leased: Leased, names: readonly string[]): Promise<Leased> => {
    for (const name of names) await fail(leased, [name], false)
    const { ids } = await lease()
    return { ...leased, ids: new Map([...leased.ids, ...ids]) }
  }

  const sentBack = async (): Promise<readonly string[]> => {
    await desk.run({ selection: { by: 'filter', filter: { engine: 'hmac' } } })
    return [...(await lease()).ids.keys()]
  }

  const faults = () => violationsIn(desk.place.url)

  it('that die in one call go back as they died, also when one failed before', async () => {
    const leased = await failOnce(await lease(), ['fifth', 'third'])
    await fail(leased, NAMES, true)
    expect(await sentBack()).toEqual(NAMES)
    expect(await faults()).toEqual([])
  })

  it('that die in one call the other way round go back the other way round', async () => {
    const reversed = NAMES.toReversed()
    await fail(await lease(), reversed, true)
    expect(await sentBack()).toEqual(reversed)
    expect(await faults()).toEqual([])
  })

  it('that die one call after the other in one microsecond go back in this order', async () => {
    const leased = await failOnce(await lease(), ['fifth', 'third'])
    await fail(leased, NAMES.slice(0, 2), true)
    await fail(leased, NAMES.slice(2, 4), true)
    await fail(leased, NAMES.slice(4), true)
    expect(await sentBack()).toEqual(NAMES)
    expect(await faults()).toEqual([])
  })

  it('do not keep letters of other keys from the present', async () => {
    const leased = await lease()
    await fail(leased, NAMES, true)
    const { letter } = await desk.office.letters.capture(reportOf(1, desk.clock.now()))
    expect(parseRowKey(letter.rowKey)?.at).toBe(desk.clock.now())
  })
})
