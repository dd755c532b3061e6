import { describe, expect, it } from 'vitest'
import { WorkBench } from '../../../test/harness/engine-at-work.ts'
import { type StoreKind, stores } from '../../../test/harness/stores.ts'

describe.each(stores)('the unified tables in $name', (kind: StoreKind) => {
  it('put, get, list, patch and expire what engines leave behind', async () => {
    const bench = await WorkBench.open(kind)
    try {
      const { tables } = bench.office
      const now = bench.clock.now()
      const { letter, created } = await tables.putLetter({
        source: 'http',
        engine: 'update-publisher',
        instanceId: 'publisher',
        correlationId: 'c-1',
        sourceId: 's-1',
        originalQueue: null,
        encoding: '',
        kind: '',
        reference: '',
        headers: null,
        payload: Buffer.from('{}'),
        dequeueCount: 1,
        firstFailureAt: now,
        lastFailureAt: now,
        errorClass: 'Error',
        errorMessage: 'no release',
        errorStack: null,
        failedBy: null,
        actor: 'test',
      })
      expect(created).toBe(true)
      expect((await tables.getLetter(letter)).letter).toMatchObject({
        correlationId: 'c-1',
        status: 'Pending',
      })
      expect((await tables.listLetters({ engine: 'update-publisher' })).items).toHaveLength(1)
      const change = { status: 'Resolved', notes: 'released', actor: 'ops' } as const
      expect(await tables.patchLetter(letter, change)).toMatchObject({
        status: 'Resolved',
        resolvedBy: 'ops',
      })
      expect(await tables.expire({ olderThanDays: 1, engine: null, actor: 'ops' })).toBe(0)

      const { entry } = await tables.putHistory({
        engine: 'update-publisher',
        operation: 'evaluate',
        status: 'Succeeded',
        durationMs: 5,
      })
      expect(await tables.getHistory('update-publisher', entry.rowKey)).toMatchObject({
        operation: 'evaluate',
      })
      const { items } = await tables.listHistory({ engine: 'update-publisher' })
      expect(items.map(({ operation }) => operation).sort()).toEqual(['capture', 'discard', 'evaluate'])
    } finally {
      await bench.close()
    }
  })
})
