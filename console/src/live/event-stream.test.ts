import { describe, expect, it } from 'vitest'
import { streamReader } from './event-stream.ts'

describe('a stream of events', () => {
  it('gives events with their names once they are complete', () => {
    const read = streamReader()
    expect(read('retry: 3000\n\nevent: hello\nda')).toEqual([])
    expect(read('ta: {"version":"1"}\n\nevent: counts\ndata: {}\n\n')).toEqual([
      { name: 'hello', text: '{"version":"1"}' },
      { name: 'counts', text: '{}' },
    ])
  })

  it('passes over comments', () => {
    expect(streamReader()(': still here\n\n')).toEqual([])
  })

  it('joins lines of data, and reads line ends of both kinds', () => {
    const read = streamReader()
    expect(read('data: a\r\ndata: b\r\n\r\n')).toEqual([{ name: 'message', text: 'a\nb' }])
  })
})
