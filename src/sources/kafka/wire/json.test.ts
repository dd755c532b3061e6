import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bytesOf, VECTORS } from '../../../../test/kafka/vectors.ts'
import { scanJson } from '../../../core/json/scan.ts'
import { escapeNonAscii, isReadableForPython, readJson, shownJson, writeJson } from './json.ts'

const read = (text: string): unknown => readJson(Buffer.from(text))
const written = (value: unknown): string => Buffer.from(writeJson(value)).toString('latin1')

/** All that both know; -0 is written as 0. */
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.double().filter((number) => !Object.is(number, -0) && !isWideInteger(number)),
      fc.maxSafeInteger(),
      fc.bigInt().filter((big) => big > Number.MAX_SAFE_INTEGER || big < Number.MIN_SAFE_INTEGER),
      fc.boolean(),
      fc.constant(null),
    ),
    fc.array(tie('value')),
    fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), tie('value'), { noNullPrototype: true }),
  ),
}))

/** JavaScript writes them without an exponent up to 10^21, so that they come back as integers. */
const isWideInteger = (number: number): boolean =>
  Number.isInteger(number) && !Number.isSafeInteger(number) && Math.abs(number) < 1e21

describe('JSON as a value', () => {
  it('has exact integers of any size', () => {
    expect(read('[9007199254740991, 9007199254740992, -9007199254740993, 12345678901234567890]')).toEqual([
      9007199254740991,
      9007199254740992n,
      -9007199254740993n,
      12345678901234567890n,
    ])
    expect(read('1000000000000000000000')).toBe(10n ** 21n)
    expect(read('-12345678901234567890.5')).toBe(-12345678901234567000)
    expect(read('1e400')).toBe(Number.POSITIVE_INFINITY)
  })

  it('has the numbers that are not finite', () => {
    expect(read('{"x": NaN, "y": -Infinity, "z": [Infinity, true, false, null, 1.5e2, ""]}')).toEqual({
      x: Number.NaN,
      y: Number.NEGATIVE_INFINITY,
      z: [Number.POSITIVE_INFINITY, true, false, null, 150, ''],
    })
  })

  it.each(['1', '12345678901234567890', 'NaN'])(
    'takes the last of several members, and __proto__ as a name, beside %s',
    (other) => {
      const value = read(`{"a": {"b": 1}, "__proto__": {"polluted": true}, "x": ${other}, "a": "\\u00fc"}`)
      expect(Object.keys(value as object)).toEqual(['a', '__proto__', 'x'])
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect((value as { readonly polluted?: unknown }).polluted).toBeUndefined()
      expect((value as { readonly a?: unknown }).a).toBe('ü')
    },
  )

  it('is read however deep it is', () => {
    const depth = 100_000
    for (const core of ['1', 'NaN']) {
      let value = read(`${'['.repeat(depth)}${core}${']'.repeat(depth)}`)
      let found = 0
      while (Array.isArray(value)) {
        value = value[0]
        found++
      }
      expect(found).toBe(depth)
    }
  })

  it('is refused when it is not JSON', () => {
    expect(() => read('{')).toThrow(SyntaxError)
    expect(() => readJson(Buffer.from('ff', 'hex'))).toThrow(SyntaxError)
  })
})

describe('a value as JSON', () => {
  it('has the layout of hexkit', () => {
    expect(
      written({ a: 1, b: [1, 2, {}], c: [], d: null, e: 'J\u00fcrgen \u2603 \ud83d\udce8\u007f\n"', f: 1.5 }),
    ).toBe(
      '{"a": 1, "b": [1, 2, {}], "c": [], "d": null, "e": "J\\u00fcrgen \\u2603 \\ud83d\\udce8\\u007f\\n\\"", "f": 1.5}',
    )
    expect(written([12345678901234567890n, Number.NaN, -Infinity, Infinity, true])).toBe(
      '[12345678901234567890, NaN, -Infinity, Infinity, true]',
    )
    expect(written('\ud800')).toBe('"\\ud800"')
    expect(written({ 'ü "': 1 })).toBe('{"\\u00fc \\"": 1}')
  })

  it('leaves out members that are undefined', () => {
    expect(written({ a: undefined, b: 1, c: undefined })).toBe('{"b": 1}')
    expect(written({ a: undefined })).toBe('{}')
  })

  it('says what cannot be written, and where', () => {
    const cycle: Record<string, unknown> = { a: [] }
    cycle.a = [1, cycle]
    const refusals: readonly (readonly [unknown, string])[] = [
      [undefined, 'JSON has no way to write undefined, at payload'],
      [[1, undefined], 'JSON has no way to write undefined, at payload[1]'],
      [new Array(2), 'JSON has no way to write undefined, at payload[0]'],
      [{ a: { 'b c': () => 1 } }, 'JSON has no way to write a function, at payload["a"]["b c"]'],
      [{ a: Symbol('s') }, 'JSON has no way to write a symbol, at payload["a"]'],
      [{ a: new Date(0) }, 'JSON has no way to write a Date, at payload["a"]'],
      [new Map(), 'JSON has no way to write a Map, at payload'],
      [{ a: new Uint8Array(2) }, 'JSON has no way to write a Uint8Array, at payload["a"]'],
      [cycle, 'JSON has no way to write a cycle, at payload["a"][1]'],
    ]
    for (const [value, message] of refusals) expect(() => writeJson(value)).toThrow(new TypeError(message))
  })

  it('may have the same part several times', () => {
    const part = { x: 1 }
    expect(written([part, part, { part }])).toBe('[{"x": 1}, {"x": 1}, {"part": {"x": 1}}]')
  })

  it('is written however deep it is', () => {
    let value: unknown = 1
    for (let depth = 0; depth < 100_000; depth++) value = depth % 2 === 0 ? [value] : { a: value }
    expect(written(value)).toHaveLength(50_000 * '{"a": []}'.length + 1)
  })

  it('comes back as it was', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        expect(readJson(writeJson(value))).toEqual(value)
        expect(written(value)).toMatch(/^[\u0020-\u007e]*$/)
      }),
    )
  })

  it('is what JSON.parse reads, too', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(written(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
})

const shown = (text: string): string => shownJson(Buffer.from(text))

describe('JSON as responses show it', () => {
  it('keeps every digit, space and escape', () => {
    const text = '{"big": 12345678901234567890, "f":1.0,"e": 1e400, "a": 1, "a": "\\u00fc\\ud800 ü"}'
    expect(shown(text)).toBe(text)
  })

  it('has null where numbers are not finite, but not in strings', () => {
    expect(shown('[NaN,-Infinity, Infinity ,-1,"NaN","\\"-Infinity\\\\",{"NaN": NaN}]')).toBe(
      '[null,null, null ,-1,"NaN","\\"-Infinity\\\\",{"NaN": null}]',
    )
    expect(shown('NaN')).toBe('null')
  })

  it('is always JSON, and the same but for them', () => {
    const name = fc.constantFrom('NaN', 'Infinity', '"\\', 'a')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        tie('leaf'),
        fc.array(tie('value')),
        fc.dictionary(name, tie('value')),
      ),
      leaf: fc.oneof(fc.double(), fc.string(), name, fc.boolean(), fc.constant(null)),
    }))
    fc.assert(
      fc.property(value, (sample) => {
        // JSON.stringify writes null for them; a token of ours stands for each until they are all in place.
        const text = JSON.stringify(sample, (_, member) =>
          typeof member === 'number' && !Number.isFinite(member) ? `\u0001${member}` : member,
        ).replaceAll(/"\\u0001([^"]+)"/g, '$1')
        expect(JSON.parse(shown(text))).toEqual(JSON.parse(JSON.stringify(sample)))
      }),
    )
  })
})

const escaped = (text: string): string => Buffer.from(escapeNonAscii(Buffer.from(text))).toString('latin1')

describe('JSON that is made ASCII', () => {
  it('has every unit of UTF-16 from U+0080 on as an escape, and nothing else changed', () => {
    expect(escaped('{"a" : "Jürgen 📨\\u00e9\u007f" }')).toBe(
      '{"a" : "J\\u00fcrgen \\ud83d\\udce8\\u00e9\u007f" }',
    )
  })

  it('is as the vectors have it', () => {
    const vector = VECTORS.intake.find(({ id }) => id === 'value-raw-utf8')
    const published = vector?.expect?.published_value
    expect(Buffer.from(escapeNonAscii(bytesOf(vector?.value ?? '')))).toEqual(bytesOf(String(published)))
  })

  it('is the same object when there is nothing to escape', () => {
    const bytes = Buffer.from('{"a": 1.0}')
    expect(escapeNonAscii(bytes)).toBe(bytes)
  })

  it('is the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        expect(JSON.parse(escaped(text))).toEqual(JSON.parse(text))
        expect(escaped(text)).not.toMatch(/[\u0080-\uffff]/)
      }),
    )
  })
})

describe('JSON for consumers in Python', () => {
  it('knows where their patience ends', () => {
    const readable = (text: string): boolean => {
      const scan = scanJson(Buffer.from(text))
      return scan.ok && isReadableForPython(scan)
    }
    expect(readable('['.repeat(500) + ']'.repeat(500))).toBe(true)
    expect(readable('['.repeat(501) + ']'.repeat(501))).toBe(false)
    expect(readable(`-${'1'.repeat(4300)}`)).toBe(true)
    expect(readable('1'.repeat(4301))).toBe(false)
    expect(readable(`${'1'.repeat(4301)}.0`)).toBe(true)
  })
})
