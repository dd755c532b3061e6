import { describe, expect, it } from 'vitest'
import { headerRows, traceOf } from './headers.ts'

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

describe('headers as rows', () => {
  it('are read from objects, from objects in them, and from lists', () => {
    expect(headerRows({ a: 'x', n: 1 })).toEqual([
      { name: 'a', value: 'x' },
      { name: 'n', value: '1' },
    ])
    expect(headerRows({ eventType: 'paid', headers: { a: 'x' } })).toEqual([
      { name: 'eventType', value: 'paid' },
      { name: 'headers.a', value: 'x' },
    ])
    expect(headerRows([['a', 'x'], { name: 'b', value: 'y' }, { key: 'c', value: null }])).toEqual([
      { name: 'a', value: 'x' },
      { name: 'b', value: 'y' },
      { name: 'c', value: 'null' },
    ])
  })

  it('are none where they have no names', () => {
    for (const headers of [null, 'text', [1, 2], 12]) expect(headerRows(headers)).toBeNull()
  })
})

describe('the trace of headers', () => {
  it('is what traceparent names, wherever it stands', () => {
    const trace = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
    expect(traceOf({ Traceparent: PARENT })).toEqual(trace)
    expect(traceOf({ headers: { traceparent: PARENT } })).toEqual(trace)
    expect(traceOf([{ name: 'traceparent', value: PARENT }])).toEqual(trace)
  })

  it('is none where there is none, or a wrong one', () => {
    expect(traceOf({ traceparent: '00-ab' })).toBeNull()
    expect(traceOf(null)).toBeNull()
  })
})
