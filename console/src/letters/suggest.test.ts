import { describe, expect, it } from 'vitest'
import { applied, suggestionsAt } from './suggest.ts'

const texts = (text: string, caret = text.length) =>
  suggestionsAt(text, caret, ['queues', 'kafka']).all.map((each) => each.text)

describe('suggestions', () => {
  it('are keys that begin with the word', () => {
    expect(texts('status:pending en')).toEqual(['engine:'])
    expect(texts('S')).toEqual(['status:', 'source:', 'signature:'])
    expect(texts('').length).toBeGreaterThan(10)
  })

  it('are values where a key has few', () => {
    expect(texts('status:')).toEqual(['status:pending ', 'status:resolved ', 'status:expired '])
    expect(texts('source:ka')).toEqual(['source:kafka '])
    expect(texts('engine:h')).toEqual([])
  })

  it('are none within quotes', () => {
    expect(texts('error:"timed st')).toEqual([])
    expect(texts('error:"timed out" st')).toEqual(['status:'])
  })

  it('replace the word at the caret, and nothing else', () => {
    const text = 'sta queue:orders'
    const at = suggestionsAt(text, 3)
    expect(applied(text, at, 'status:')).toEqual({ text: 'status: queue:orders', caret: 7 })
    const value = 'status:pe  queue:orders'
    expect(applied(value, suggestionsAt(value, 9), 'status:pending ')).toEqual({
      text: 'status:pending queue:orders',
      caret: 15,
    })
  })
})
