import { describe, expect, it } from 'vitest'
import { inOrderOf } from './steady.ts'

interface Row {
  readonly key: string
  readonly count: number
}
const keyOf = ({ key }: Row) => key
const row = (key: string, count: number): Row => ({ key, count })

describe('rows that somebody is on', () => {
  it('keep their places and take their new values', () => {
    const rows = [row('b', 9), row('a', 2)]
    expect(inOrderOf(['a', 'b'], rows, keyOf, new Map())).toEqual([row('a', 2), row('b', 9)])
  })

  it('stay as they were when they are gone from the list', () => {
    const gone = new Map([['a', row('a', 1)]])
    expect(inOrderOf(['a', 'b'], [row('b', 2)], keyOf, gone)).toEqual([row('a', 1), row('b', 2)])
  })

  it('have new ones below them, wherever these belong', () => {
    const rows = [row('new', 9), row('a', 2)]
    expect(inOrderOf(['a'], rows, keyOf, new Map())).toEqual([row('a', 2), row('new', 9)])
  })
})
