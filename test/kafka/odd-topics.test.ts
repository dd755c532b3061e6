/** Topics as they come: missing, growing, compacted, compressed, with transactions. Everything that lies in them becomes a letter. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { KafkaServers, rawOf, type Service } from '../world/kafka/server.ts'
import { freshSqlite } from '../world/stores.ts'

describeKafka('a topic', () => {
  let here: KafkaServers
  beforeAll(async () => {
    here = await KafkaServers.open(
      { name: 'sqlite', fresh: freshSqlite },
      {
        services: {
          late: { hasNoDlqTopic: true },
          growing: {},
          compacted: { dlqConfig: { 'cleanup.policy': 'compact' } },
          compressed: {},
          transactional: {},
        },
      },
    )
  })
  afterAll(() => here.close())

  const numbersOf = async (service: Service): Promise<unknown[]> =>
    (await here.preview(service)).map(({ payload }) => (payload as { n: number } | null)?.n ?? null)

  const dead = ({ name }: Service, n: number, key = `k${n}`) => rawOf({ service: name, key, value: { n } })

  it('that does not exist yet is reported, holds up no other, and is read when it comes', async () => {
    const [late, growing] = [here.service('late'), here.service('growing')]
    await here.die(growing, [{ value: { n: 0 }, partition: 0 }])
    await here.expectPending(growing, 1)
    const ready = async () => (await here.ask<Record<string, unknown>>('/health/ready')).body
    expect(await ready()).toEqual({ status: 'pass', degraded: ['kafka'] })
    await here.broker.newTopic({ name: late.dlq })
    await here.die(late, [{ value: { n: 0 } }])
    await here.expectPending(late, 1)
    await expect.poll(ready).toEqual({ status: 'pass' })
  })

  it('that gets more partitions is read in all of them', async () => {
    const growing = here.service('growing')
    await here.broker.addPartitions(growing.dlq, 3)
    await here.die(
      growing,
      [1, 2, 3].map((n) => ({ value: { n }, partition: n % 3 })),
    )
    await here.expectPending(growing, 4)
    for (const partition of [0, 1, 2]) await here.expectNoLag(growing, partition)
    expect((await numbersOf(growing)).toSorted()).toEqual([0, 1, 2, 3])
  })

  it('that is compacted may hold records without a value, which delete no letter', async () => {
    const compacted = here.service('compacted')
    const tombstone = { ...dead(compacted, 0, 'k'), value: null }
    await here.broker.produce(compacted.dlq, [dead(compacted, 0, 'k'), tombstone, dead(compacted, 2, 'k')])
    await here.expectPending(compacted, 3)
    expect(await here.preview(compacted)).toMatchObject([
      { payload: { n: 0 }, bartleby: { reasons: [] } },
      { payload: null, bartleby: { reasons: ['value_null'] } },
      { payload: { n: 2 } },
    ])
  })

  it('is read whatever its batches are compressed with', async () => {
    const compressed = here.service('compressed')
    const kinds = ['gzip', 'snappy', 'lz4', 'zstd'] as const
    for (const [n, compression] of kinds.entries()) {
      await here.broker.produce(compressed.dlq, [dead(compressed, 2 * n), dead(compressed, 2 * n + 1)], {
        compression,
      })
    }
    await here.expectPending(compressed, 8)
    expect(await numbersOf(compressed)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  it('is read without what its producers took back', async () => {
    const transactional = here.service('transactional')
    const write = (n: number, transaction?: 'commit' | 'abort') =>
      here.broker.produce(transactional.dlq, [dead(transactional, n)], transaction === undefined ? {} : { transaction }) // biome-ignore format: one call
    await write(0, 'commit')
    await write(1, 'abort')
    await write(2)
    await write(3, 'abort')
    await here.expectPending(transactional, 2)
    await here.expectNoLag(transactional)
    expect(await numbersOf(transactional)).toEqual([0, 2])
  })
})
