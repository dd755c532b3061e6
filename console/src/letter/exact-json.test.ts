import { describe, expect, it } from 'vitest'
import { indentJson, isJson, stringOf } from '../../../src/core/json/tokens.ts'
import { childrenOf, compact, type JsonSpan, jsonRoot } from './exact-json.ts'

const written = (text: string, { start, end }: JsonSpan): string => text.slice(start, end)

function rootOf(text: string): JsonSpan {
  const root = jsonRoot(text)
  if (root === null) throw new Error('it is no JSON')
  return root
}

describe('the tree of a JSON text', () => {
  it('keeps every digit of a number', () => {
    const text = '{"id": 9007199254740993, "rate":1.10 , "big":1e400, "zero":-0}'
    const { children } = childrenOf(text, rootOf(text), 10)
    expect(children.map(({ name, span }) => [name, span.kind, written(text, span)])).toEqual([
      ['id', 'number', '9007199254740993'],
      ['rate', 'number', '1.10'],
      ['big', 'number', '1e400'],
      ['zero', 'number', '-0'],
    ])
  })

  it('shows members of the same name, each in its place', () => {
    const text = '{"a":1,"b":2,"a":3}'
    const { children } = childrenOf(text, rootOf(text), 10)
    expect(children.map(({ name, span }) => `${name}=${written(text, span)}`)).toEqual(['a=1', 'b=2', 'a=3'])
  })

  it('is not led astray by braces, quotes and backslashes in strings', () => {
    const text = String.raw`[ "a}]\"", {"x,\\": [ [], {} ]}, true, null ]`
    const { children } = childrenOf(text, rootOf(text), 10)
    expect(children.map(({ span }) => span.kind)).toEqual(['string', 'object', 'boolean', 'null'])
    const [first, second] = children
    if (first === undefined || second === undefined) throw new Error('there are four')
    expect(stringOf(written(text, first.span))).toBe('a}]"')
    expect(childrenOf(text, second.span, 10).children.map(({ name }) => name)).toEqual(['x,\\'])
  })

  it('gives long lists piece by piece, and tells when they are over', () => {
    const text = `[${Array.from({ length: 7 }, (_, n) => n * 10).join(' , ')}]`
    const root = rootOf(text)
    const first = childrenOf(text, root, 3)
    const second = childrenOf(text, root, 3, first.next ?? undefined)
    const third = childrenOf(text, root, 3, second.next ?? undefined)
    const all = [first, second, third].flatMap(({ children }) => children)
    expect(all.map(({ index, span }) => [index, written(text, span)])).toEqual(
      Array.from({ length: 7 }, (_, n) => [n, String(n * 10)]),
    )
    expect([first.next === null, second.next === null, third.next]).toEqual([false, false, null])
  })

  it('of nothing is nothing, and of a value alone the value', () => {
    for (const text of ['{}', '[ ]', '{\n}'])
      expect(childrenOf(text, rootOf(text), 5)).toEqual({ children: [], next: null })
    expect(written(' 12 ', rootOf(' 12 '))).toBe('12')
    expect(childrenOf('"x"', rootOf('"x"'), 5).children).toEqual([])
  })

  it('goes as deep as texts can', () => {
    const depth = 100_000
    const text = '['.repeat(depth) + ']'.repeat(depth)
    expect(rootOf(text)).toEqual({ kind: 'array', start: 0, end: 2 * depth })
  })

  it('is none for what is no JSON', () => {
    for (const text of ['', '{', '{"a":}', 'nothing', '\ufeff{}']) expect(jsonRoot(text)).toBeNull()
  })
})

describe('compact JSON', () => {
  it('tells whether two texts differ in more than white space', () => {
    const text = String.raw`{"a":9007199254740993,"b":[ ],"c":{"d":"x: {,}\"","d":[1,2]},"e":{}}`
    expect(compact(indentJson(text) ?? '')).toBe(compact(text))
    expect(compact('{"a": "x y"}')).toBe('{"a":"x y"}')
  })

  it('is not made of what is no JSON', () => {
    expect(compact('{a}')).toBeNull()
    expect(isJson('12')).toBe(true)
  })
})
