import { describe, expect, it } from 'vitest'
import { togetherOrAlone } from './bad-rows.ts'
import { StoreUnavailable } from './database.ts'

const { signal } = new AbortController()

describe('a bad row', () => {
  it('does not stop the others, which are done without it', async () => {
    const batches: number[][] = []
    const bad: number[] = []
    const act = async (rows: readonly number[]) => {
      batches.push([...rows])
      if (rows.includes(2)) throw new Error('unfit')
      return rows.length
    }
    expect(await togetherOrAlone([1, 2, 3], act, (row) => bad.push(row), signal)).toBe(2)
    expect(batches).toEqual([[1, 2, 3], [1], [2], [3]])
    expect(bad).toEqual([2])
    expect(await togetherOrAlone([4, 5], act, (row) => bad.push(row), signal)).toBe(2)
    expect(batches.at(-1)).toEqual([4, 5])
  })

  it('is none while the store is away: nothing more is tried', async () => {
    let tries = 0
    const away = async () => {
      tries++
      throw new StoreUnavailable('away')
    }
    await expect(togetherOrAlone([1, 2], away, () => {}, signal)).rejects.toBeInstanceOf(StoreUnavailable)
    expect(tries).toBe(1)
  })
})
