import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonScan, scanJson } from './scan.ts'
import { isJson } from './tokens.ts'

const scan = (text: string): JsonScan => scanJson(Buffer.from(text))

describe('a scan of JSON', () => {
  it('says what kind it is, how deep it is and how long its integers are', () => {
    expect(scan(' {"a": [1, {"b": -1234, "c": 123456.5, "d": 12345e3}]} ')).toEqual({
      ok: true,
      kind: 'object',
      ascii: true,
      depth: 3,
      longestInteger: 4,
      nonFinite: false,
    })
    expect(scan('[]')).toMatchObject({ kind: 'array', depth: 1, longestInteger: 0 })
    expect(scan('"ü"')).toMatchObject({ kind: 'scalar', depth: 0, ascii: false })
  })

  it('takes the numbers that only Python calls JSON', () => {
    for (const text of ['NaN', 'Infinity', '-Infinity', '{"a": [NaN,-Infinity]}']) {
      expect(scan(text)).toMatchObject({ ok: true, nonFinite: true })
    }
    for (const text of ['-NaN', 'nan', 'Inf', '+Infinity', '- Infinity', 'NaN1', '{NaN: 1}', '-']) {
      expect(scan(text)).toEqual({ ok: false, why: 'not_json' })
    }
    expect(scan('"NaN"')).toMatchObject({ ok: true, nonFinite: false })
  })

  it.each([
    '',
    ' ',
    '\ufeff{}',
    '{',
    '}',
    ']',
    '[}',
    '{]',
    '[1,]',
    '[,1]',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1 "b":2}',
    '{a:1}',
    '1 2',
    '[] []',
    ',',
    ':',
    '01',
    '1.',
    '.5',
    '1e',
    '1e+',
    '-a',
    '"',
    '"\\',
    '"\\x"',
    '"\\u12g4"',
    '"\\u12',
    '"\n"',
    '"a\u0000b"',
    'tru',
    'truee',
    'ü',
    '\u00a01',
    "{'a':1}",
    '[1}',
    '{"a":1]',
    '"a" "b"',
    '[1:2]',
    '{"a","b"}',
    '{1:2}',
  ])('does not take %j', (text) => {
    expect(scan(text)).toEqual({ ok: false, why: 'not_json' })
  })

  it('tells bytes that are no text from text that is not JSON', () => {
    expect(scanJson(Buffer.from('7b2261223a2022ff227d', 'hex'))).toEqual({ ok: false, why: 'not_utf8' })
    // A surrogate in UTF-8, and a zero that is longer than it need be.
    expect(scanJson(Buffer.from('22eda08022', 'hex'))).toEqual({ ok: false, why: 'not_utf8' })
    expect(scanJson(Buffer.from('22c08022', 'hex'))).toEqual({ ok: false, why: 'not_utf8' })
  })

  it('has no depth that is too deep for it', () => {
    const depth = 200_000
    expect(scan('['.repeat(depth) + ']'.repeat(depth))).toMatchObject({ ok: true, depth })
    expect(scan('{"a":['.repeat(depth) + ']}'.repeat(depth))).toMatchObject({ ok: true, depth: 2 * depth })
    expect(scan(`${'['.repeat(depth)}}`)).toEqual({ ok: false, why: 'not_json' })
    expect(scan('['.repeat(depth))).toEqual({ ok: false, why: 'not_json' })
  })

  it('takes what JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(3), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(scan(text)).toMatchObject({ ok: true, ascii: !/[\u0080-\uffff]/.test(text) })
      }),
    )
  })

  it('takes and refuses what JSON.parse does', () => {
    const change = fc.record({
      at: fc.nat(),
      remove: fc.nat(2),
      insert: fc.constantFrom(
        '',
        '"',
        '\\',
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        ' ',
        '0',
        '1',
        '-',
        '.',
        'e',
        'u',
        '\n',
        'ü',
      ),
    })
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(change, { minLength: 1, maxLength: 3 }), (value, changes) => {
        let text = JSON.stringify(value)
        for (const { at, remove, insert } of changes) {
          const place = at % (text.length + 1)
          text = text.slice(0, place) + insert + text.slice(place + remove)
        }
        fc.pre(text.isWellFormed())
        expect(scan(text).ok).toBe(isJson(text))
      }),
      { numRuns: 2_000 },
    )
  })

  it('takes and refuses short texts as JSON.parse does', () => {
    const text = fc.string({ unit: fc.constantFrom(...'{}[],:"\\ 01-+.eEtruefalsnu\n\t'), maxLength: 12 })
    fc.assert(
      fc.property(text, (sample) => {
        expect(scan(sample).ok).toBe(isJson(sample))
      }),
      { numRuns: 3_000 },
    )
  })

  it('has an answer for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        expect(typeof scanJson(bytes).ok).toBe('boolean')
      }),
    )
  })
})
