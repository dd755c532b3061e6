import { describe, expect, it } from 'vitest'
import { Semaphore } from './semaphore.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('a semaphore', () => {
  it('lets so many pass at a time, the others in their order', async () => {
    const semaphore = new Semaphore(2)
    const begun: number[] = []
    const ends: (() => void)[] = []
    const calls = [0, 1, 2, 3].map((nth) =>
      semaphore.pass(() => {
        begun.push(nth)
        return new Promise<void>((resolve) => void ends.push(resolve))
      }),
    )
    await turn()
    expect(begun).toEqual([0, 1])
    ends[1]?.()
    await turn()
    expect(begun).toEqual([0, 1, 2])
    for (let nth = 0; nth < 4; nth++) {
      ends[nth]?.()
      await turn()
    }
    await Promise.all(calls)
  })

  it('gives the room back of a call that fails, and forgets who waits no longer', async () => {
    const semaphore = new Semaphore(1)
    await expect(semaphore.pass(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    await semaphore.take()
    const gone = new AbortController()
    const waiting = semaphore.take(gone.signal)
    gone.abort(new Error('late'))
    await expect(waiting).rejects.toThrow('late')
    semaphore.giveBack()
    await semaphore.take(AbortSignal.timeout(1_000))
  })
})
