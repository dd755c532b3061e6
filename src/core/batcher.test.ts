import { setImmediate as endOfTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Batcher, type BatcherOptions } from './batcher.ts'

/** A batch ends in one turn, the next one begins at the end of it. */
async function twoTurns(): Promise<void> {
  await endOfTurn()
  await endOfTurn()
}

/** Batches that end when the test says so. Doubles numbers; 13 and 99 fail every batch that they are in. */
class Bench {
  readonly batches: (readonly number[])[] = []
  readonly gather: Batcher<number, number>
  readonly #ends: (() => void)[] = []

  constructor(options: BatcherOptions<number> = {}) {
    this.gather = new Batcher(async (batch) => {
      this.batches.push(batch)
      await new Promise<void>((resolve) => this.#ends.push(resolve))
      if (batch.includes(13)) throw new Error('13 is bad luck')
      if (batch.includes(99)) throw new RangeError('99 is too much for anybody')
      return batch.map((one) => one * 2)
    }, options)
  }

  /** Ends the oldest batch, and lets begin what waited for it. */
  async end(): Promise<void> {
    this.#ends.shift()?.()
    await twoTurns()
  }

  async endAll(): Promise<void> {
    while (this.#ends.length > 0) await this.end()
  }

  do(...numbers: readonly number[]): Promise<number>[] {
    return numbers.map((one) => this.gather.do(one))
  }
}

describe('calls that are gathered', () => {
  it('are one batch when they come in the same turn, and get their own results', async () => {
    const bench = new Bench()
    const calls = bench.do(1, 2, 3)
    await endOfTurn()
    expect(bench.batches).toEqual([[1, 2, 3]])
    await bench.endAll()
    expect(await Promise.all(calls)).toEqual([2, 4, 6])
  })

  it('do not wait when they are alone', async () => {
    const bench = new Bench()
    const [call] = bench.do(1)
    await endOfTurn()
    expect(bench.batches).toEqual([[1]])
    await bench.endAll()
    expect(await call).toBe(2)
  })

  it('that come while a batch is under way are the next one', async () => {
    const bench = new Bench()
    const calls = bench.do(1)
    await endOfTurn()
    calls.push(...bench.do(2))
    await endOfTurn()
    calls.push(...bench.do(3))
    expect(bench.batches).toEqual([[1]])
    await bench.end()
    expect(bench.batches).toEqual([[1], [2, 3]])
    await bench.endAll()
    expect(await Promise.all(calls)).toEqual([2, 4, 6])
  })

  it('make as many batches at once as are allowed, none larger or heavier than allowed', async () => {
    const bench = new Bench({ atOnce: 2, most: 3, mostWeight: 10 })
    const calls = [
      ...bench.do(1, 2, 3, 4),
      bench.gather.do(5, 8),
      bench.gather.do(6, 2),
      bench.gather.do(7, 50),
    ]
    await endOfTurn()
    expect(bench.batches).toEqual([
      [1, 2, 3],
      [4, 5],
    ])
    await bench.end()
    expect(bench.batches.slice(2)).toEqual([[6]])
    await bench.end()
    expect(bench.batches.slice(3)).toEqual([[7]])
    await bench.endAll()
    expect(await Promise.all(calls)).toEqual([2, 4, 6, 8, 10, 12, 14])
  })

  it('are never in two batches at once when they are about the same, and keep their order', async () => {
    const bench = new Bench({ atOnce: 2, most: 2, subjectsOf: (one) => [String(one % 10)] })
    const calls = bench.do(1, 2, 11, 3, 4)
    await endOfTurn()
    expect(bench.batches).toEqual([[1, 2]])
    await bench.end()
    expect(bench.batches.slice(1)).toEqual([[11, 3], [4]])
    await bench.endAll()
    expect(await Promise.all(calls)).toEqual([2, 4, 22, 6, 8])
  })

  it('about the same are so many in a batch, unless one call alone is more', async () => {
    const subjectsOf = (one: number) => Array<string>(one === 5 ? 3 : 1).fill(one < 9 ? 'same' : `${one}`)
    const bench = new Bench({ mostOfSubject: 2, subjectsOf })
    const calls = bench.do(9, 1, 10, 2, 3, 5, 11)
    await endOfTurn()
    await bench.endAll()
    expect(bench.batches).toEqual([[9, 1, 10, 2], [3], [5, 11]])
    expect(await Promise.all(calls)).toEqual([18, 2, 20, 4, 6, 10, 22])
  })

  it('are done one by one when their batch fails: only the one to blame fails', async () => {
    const bench = new Bench()
    const settled = Promise.allSettled(bench.do(1, 13, 3))
    await endOfTurn()
    await bench.endAll()
    expect(bench.batches).toEqual([[1, 13, 3], [1], [13], [3]])
    expect(await settled).toEqual([
      { status: 'fulfilled', value: 2 },
      { status: 'rejected', reason: new Error('13 is bad luck') },
      { status: 'fulfilled', value: 6 },
    ])
  })

  it('all fail at once with an error that would meet each of them', async () => {
    const bench = new Bench({ meetsAll: (error) => error instanceof Error })
    const settled = Promise.allSettled(bench.do(1, 13))
    await endOfTurn()
    await bench.endAll()
    expect(bench.batches).toEqual([[1, 13]])
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })

  it('that are done one by one fail at once from there on', async () => {
    const bench = new Bench({ meetsAll: (error) => error instanceof RangeError })
    const settled = Promise.allSettled(bench.do(13, 1, 99, 3, 4))
    await endOfTurn()
    await bench.endAll()
    expect(bench.batches).toEqual([[13, 1, 99, 3, 4], [13], [1], [99]])
    const reasons = (await settled).map((each) =>
      each.status === 'rejected' ? each.reason.name : each.value,
    )
    expect(reasons).toEqual(['Error', 2, 'RangeError', 'RangeError', 'RangeError'])
  })

  it('go on after a failure', async () => {
    const bench = new Bench()
    const bad = Promise.allSettled(bench.do(13))
    await endOfTurn()
    await bench.endAll()
    expect((await bad)[0]?.status).toBe('rejected')
    const [good] = bench.do(4)
    await endOfTurn()
    await bench.endAll()
    expect(await good).toBe(8)
  })

  it('are idle once all are done, also those that came meanwhile', async () => {
    const bench = new Bench()
    await bench.gather.idle()
    const first = bench.do(1)
    let isIdle = false
    const idle = bench.gather.idle().then(() => {
      isIdle = true
    })
    await endOfTurn()
    const second = bench.do(2)
    await bench.end()
    expect(isIdle).toBe(false)
    await bench.endAll()
    await idle
    expect(await Promise.all([...first, ...second])).toEqual([2, 4])
  })
})
