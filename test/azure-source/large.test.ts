/** An account with many partitions and entities is taken in whole, once each, by two servers that read it side by side. */
import type { TransactionAction } from '@azure/data-tables'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AzureWorld } from '../world/azure-world.ts'
import { describeAzurite } from '../world/azurite.ts'
import { sizeOf } from '../world/limits.ts'
import { stores } from '../world/stores.ts'

const PARTITIONS = sizeOf(20, 200)
const ENTITIES = sizeOf(2_000, 100_000)
/** Azure takes no more in one transaction. */
const BATCH = 100
const SIDE_BY_SIDE = 4

describeAzurite('a large account', (azurite) => {
  describe.each(stores)('on $name', (kind) => {
    let world: AzureWorld
    beforeEach(async () => {
      world = await AzureWorld.open(azurite(), kind)
    })
    afterEach(async () => {
      try {
        expect(await world.violations()).toEqual([])
      } finally {
        await world.close()
      }
    })

    it(`of ${PARTITIONS} partitions and ${ENTITIES} entities has as many letters, and is read on from its mark`, async () => {
      const batches = Array.from({ length: ENTITIES / BATCH }, (_, i) => i)
      const write = async (batch: number): Promise<void> => {
        const partitionKey = `engine-${batch % PARTITIONS}`
        const actions = Array.from({ length: BATCH }, (_, i): TransactionAction => {
          const number = batch * BATCH + i
          const columns = world.columns({ Engine: partitionKey, CorrelationId: `c-${number}` })
          return ['create', { ...columns, partitionKey, rowKey: `row-${number}` }]
        })
        await world.dlq.submitTransaction(actions)
      }
      const writers = Array.from({ length: SIDE_BY_SIDE }, async () => {
        for (let batch = batches.pop(); batch !== undefined; batch = batches.pop()) await write(batch)
      })
      await Promise.all(writers)
      const other = await world.another()
      await Promise.all([world.server.round(), other.round()])
      expect(await world.total()).toBe(ENTITIES)
      const { items } = await world.letters.numbers.counts()
      expect(new Set(items.map(({ engine }) => engine)).size).toBe(PARTITIONS)
      expect(await world.server.azure.state()).toMatchObject({ unwritten: 0, troubles: [] })

      const last = await world.fail({ partitionKey: 'engine-7' })
      await world.server.round()
      expect(await world.total()).toBe(ENTITIES + 1)
      const { letter } = await world.letters.get({ engine: 'engine-7', rowKey: last.rowKey })
      await world.letters.retry(letter, { edit: null, notes: null, actor: 'nell' })
      await (await world.another()).round()
      expect(await world.entity(last)).toMatchObject({ Status: { value: 'Resolved' } })
    })
  })
})
