import { describe, expect, it } from 'vitest'
import { negotiate } from './negotiate.ts'

describe('the format that a header names', () => {
  it.each([undefined, '', '*/*', 'application/*', 'application/json', 'Application/JSON ; charset=utf-8'])(
    'is JSON for %j',
    (header) => expect(negotiate(header).format).toBe('json'),
  )

  it.each([
    'application/protobuf',
    ' APPLICATION/Protobuf',
    'application/protobuf;x=1',
    'application/protobuf, text/html',
  ])('is protobuf for %j', (header) => expect(negotiate(header).format).toBe('protobuf'))

  it.each([
    ['text/html, application/json', 'text/html'],
    ['Text/Plain; charset=utf-8', 'text/plain'],
    ['application/jsonp', 'application/jsonp'],
    ['application', 'application'],
  ])('is none of ours for %j', (header, given) => {
    expect(negotiate(header)).toEqual({ format: undefined, given })
  })
})
