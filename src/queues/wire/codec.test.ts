import { describe, expect, it } from 'vitest'
import { duplicateMember, negotiate } from './codec.ts'

const found = (text: string) => duplicateMember(text, JSON.parse(text))

describe('a member that a JSON text has twice', () => {
  it.each([
    ['at the top', '{"a":1,"b":2,"a":1}', 'a'],
    ['in an object of a list', '{"items":[{"a":1},{"a":1,"b":{},"a":2}]}', 'a'],
    ['at any depth', '{"x":{"y":[[{"z":null,"z":null}]]}}', 'z'],
    ['written with escapes', '{"a":1,"\\u0061":2}', 'a'],
    ['written with escapes within', '{"q\\"a":1,"q\\u0022\\u0061":2}', 'q"a'],
    ['with an empty name', '{"":1,"":2}', ''],
    ['with a name that objects have anyway', '{"__proto__":1,"__proto__":{"a":1}}', '__proto__'],
    ['with another such name', '{"constructor":1,"toString":2,"constructor":1}', 'constructor'],
    ['with white space about it', '{ "a"\n:\t1 ,\r"a" : 2 }', 'a'],
    ['in both spellings', '{"queue_name":"a","queueName":"b"}', 'queue_name'],
    ['in both spellings, the other way round', '{"items":[{"enqueueAt":1,"enqueue_at":2}]}', 'enqueue_at'],
  ])('is found %s', (_where, text, name) => {
    expect(found(text)).toBe(name)
  })

  it.each([
    ['null'],
    ['"a:\\"b\\":"'],
    ['[]'],
    ['{}'],
    ['{"a":{"a":{"a":1}}}'],
    ['[{"a":1},{"a":1}]'],
    ['{"a":"\\"a\\":1,\\"a\\":2","b":"\\\\"}'],
    ['{"a":":","b":"{\\"a\\":1}"}'],
    ['{"__proto__":{"a":1},"a":1,"a_":1,"_a":2}'],
    ['{"a":"\\\\\\"","b":["c","c"]}'],
  ])('is not found in %s', (text) => {
    expect(found(text)).toBeNull()
  })

  it('is looked for without a limit to depth', () => {
    const depth = 50_000
    const nested = `${'{"a":['.repeat(depth)}${']}'.repeat(depth)}`
    expect(found(nested)).toBeNull()
  })
})

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
