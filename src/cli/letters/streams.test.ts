import { Readable } from 'node:stream'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { byteLines, mapInOrder } from './files.ts'

describe('work in order', () => {
  const numbers = async function* (count: number, log: string[] = []) {
    try {
      for (let number = 0; number < count; number++) yield number
    } finally {
      log.push('closed')
    }
  }

  it('has so many under way at once, and gives results in the order of the source', async () => {
    let underWay = 0
    let most = 0
    const work = async (number: number) => {
      underWay += 1
      most = Math.max(most, underWay)
      for (let turns = 0; turns < 5 - (number % 5); turns++) await endOfTurn()
      underWay -= 1
      return number * 2
    }
    const results: number[] = []
    for await (const result of mapInOrder(numbers(12), 4, work)) results.push(result)
    expect(results).toEqual(Array.from({ length: 12 }, (_, number) => number * 2))
    expect(most).toBe(4)
  })

  it('ends with the first failure, when all that was begun has ended', async () => {
    const log: string[] = []
    const work = async (number: number) => {
      if (number === 1) throw new Error('no')
      await endOfTurn()
      log.push(`ended ${number}`)
      return number
    }
    const reading = async () => {
      for await (const _ of mapInOrder(numbers(10, log), 3, work));
    }
    await expect(reading()).rejects.toThrow('no')
    expect(log).toContain('closed')
    expect(log.filter((line) => line.startsWith('ended'))).toEqual(['ended 0', 'ended 2', 'ended 3'])
  })

  it('closes its source when the reader leaves', async () => {
    const log: string[] = []
    for await (const _ of mapInOrder(numbers(10, log), 2, async (number) => number)) break
    expect(log).toEqual(['closed'])
  })
})

const linesOf = async (...chunks: string[]) => {
  const lines: string[] = []
  for await (const line of byteLines(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))) {
    lines.push(line.toString())
  }
  return lines
}

it('ends lines at line feeds only, wherever chunks end', async () => {
  expect(await linesOf('a\u2028b\r', 'c\nde', '', 'f\n\nlast')).toEqual(['a\u2028b\rc', 'def', '', 'last'])
  expect(await linesOf('a\n')).toEqual(['a'])
  expect(await linesOf()).toEqual([])
})
