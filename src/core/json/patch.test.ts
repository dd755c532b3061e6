import { describe, expect, it } from 'vitest'
import { parseExactly } from './exact.ts'
import { type PatchOperation, patchText } from './patch.ts'

/** The new text, or why there is none. */
function patched(text: string, operations: unknown): string {
  const result = patchText(text, operations as readonly PatchOperation[], 1_000_000)
  return result.ok ? result.text : `refused: ${result.index}: ${result.reason}`
}

describe('the examples of RFC 6902', () => {
  it.each<[string, string, unknown[], string]>([
    [
      'A.1 adding a member',
      '{"foo":"bar"}',
      [{ op: 'add', path: '/baz', value: 'qux' }],
      '{"foo":"bar","baz":"qux"}',
    ],
    [
      'A.2 adding an element',
      '{"foo":["bar","baz"]}',
      [{ op: 'add', path: '/foo/1', value: 'qux' }],
      '{"foo":["bar","qux","baz"]}',
    ],
    ['A.3 removing a member', '{"baz":"qux","foo":"bar"}', [{ op: 'remove', path: '/baz' }], '{"foo":"bar"}'],
    [
      'A.4 removing an element',
      '{"foo":["bar","qux","baz"]}',
      [{ op: 'remove', path: '/foo/1' }],
      '{"foo":["bar","baz"]}',
    ],
    [
      'A.5 replacing a value',
      '{"baz":"qux","foo":"bar"}',
      [{ op: 'replace', path: '/baz', value: 'boo' }],
      '{"baz":"boo","foo":"bar"}',
    ],
    [
      'A.6 moving a value',
      '{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
      [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
      '{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}',
    ],
    [
      'A.7 moving an element',
      '{"foo":["all","grass","cows","eat"]}',
      [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
      '{"foo":["all","cows","eat","grass"]}',
    ],
    [
      'A.8 testing: success',
      '{"baz":"qux","foo":["a",2,"c"]}',
      [
        { op: 'test', path: '/baz', value: 'qux' },
        { op: 'test', path: '/foo/1', value: 2 },
      ],
      '{"baz":"qux","foo":["a",2,"c"]}',
    ],
    [
      'A.9 testing: error',
      '{"baz":"qux"}',
      [{ op: 'test', path: '/baz', value: 'bar' }],
      'refused: 0: the value there is another',
    ],
    [
      'A.10 adding a nested object',
      '{"foo":"bar"}',
      [{ op: 'add', path: '/child', value: { grandchild: {} } }],
      '{"foo":"bar","child":{"grandchild":{}}}',
    ],
    [
      'A.12 adding to what is not there',
      '{"foo":"bar"}',
      [{ op: 'add', path: '/baz/bat', value: 'qux' }],
      'refused: 0: there is nothing at /baz',
    ],
    ['A.14 escaped names', '{"/":9,"~1":10}', [{ op: 'test', path: '/~01', value: 10 }], '{"/":9,"~1":10}'],
    [
      'A.15 strings are no numbers',
      '{"/":9,"~1":10}',
      [{ op: 'test', path: '/~01', value: '10' }],
      'refused: 0: the value there is another',
    ],
    [
      'A.16 adding a list',
      '{"foo":["bar"]}',
      [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }],
      '{"foo":["bar",["abc","def"]]}',
    ],
  ])('%s', (_name, text, operations, expected) => {
    expect(patched(text, operations)).toBe(expected)
  })
})

describe('a patch', () => {
  it.each<[string, string, unknown[], string]>([
    ['the whole document', ' {"a":1}\n', [{ op: 'replace', path: '', value: [1] }], ' [1]\n'],
    ['the whole document as its own part', '[1]', [{ op: 'copy', from: '', path: '/-' }], '[1,[1]]'],
    ['a member that is there', '{"a":1,"b":2}', [{ op: 'add', path: '/a', value: 3 }], '{"a":3,"b":2}'],
    ['onto itself', '{"a" : 1}', [{ op: 'move', from: '/a', path: '/a' }], '{"a" : 1}'],
    ['an empty object', '{ }', [{ op: 'add', path: '/a', value: 1 }], '{"a":1}'],
    ['the last member', '{\n  "a": 1\n}', [{ op: 'remove', path: '/a' }], '{}'],
    [
      'what it put there before',
      '{}',
      [
        { op: 'add', path: '/a', value: { b: [] } },
        { op: 'add', path: '/a/b/0', value: 1 },
      ],
      '{"a":{"b":[1]}}',
    ],
    ['lines', '{\n  "a": 1\n}', [{ op: 'add', path: '/b', value: 2 }], '{\n  "a": 1,\n  "b": 2\n}'],
    ['a space behind colons', '{"a": 1}', [{ op: 'add', path: '/b', value: 2 }], '{"a": 1, "b": 2}'],
    ['spaces around all', '[ 1 , 2 ]', [{ op: 'add', path: '/0', value: 0 }], '[ 0 , 1 , 2 ]'],
    ['the first of several', '{ "a":1,  "b":2 }', [{ op: 'remove', path: '/a' }], '{ "b":2 }'],
  ])('follows the style of the text: %s', (_name, text, operations, expected) => {
    expect(patched(text, operations)).toBe(expected)
  })

  it.each<[string, unknown, string]>([
    ['no member', { op: 'replace', path: '/b', value: 1 }, 'there is nothing at /b'],
    ['no member to remove', { op: 'remove', path: '/a/z' }, 'there is nothing at /a/z'],
    ['no element', { op: 'remove', path: '/a/list/3' }, 'there is nothing at /a/list/3'],
    ['an element behind the end', { op: 'add', path: '/a/list/4', value: 1 }, 'the list has 3 elements'],
    ['a name in a list', { op: 'add', path: '/a/list/x', value: 1 }, 'no number of an element'],
    [
      'a number with a zero before it',
      { op: 'replace', path: '/a/list/01', value: 1 },
      'there is nothing at /a/list/01',
    ],
    ['behind the end', { op: 'replace', path: '/a/list/-', value: 1 }, 'there is nothing at /a/list/-'],
    ['below a text', { op: 'add', path: '/a/text/x', value: 1 }, '/a/text is neither an object nor a list'],
    [
      'below nothing',
      { op: 'copy', from: '/a/text/x/y', path: '/b' },
      '/a/text is neither an object nor a list',
    ],
    [
      'an inherited name',
      { op: 'replace', path: '/constructor', value: 1 },
      'there is nothing at /constructor',
    ],
    ['a prototype', { op: 'add', path: '/__proto__/polluted', value: 1 }, 'there is nothing at /__proto__'],
    ['into itself', { op: 'move', from: '/a', path: '/a/b' }, 'cannot be moved into itself'],
    ['everything', { op: 'remove', path: '' }, 'the whole payload cannot be removed'],
  ])('is refused where it finds %s', (_name, operation, reason) => {
    const text = '{"a":{"list":[1,2,3],"text":"x"}}'
    expect(patched(text, [operation])).toContain(reason)
  })

  it('keeps what it does not name: escapes, digits, white space, order, duplicates', () => {
    const text = '{ "z" : "\\u0041\\/", "n":[1.0,12345678901234567890 ,1E+2],\r\n\t"d":1,"d":2 , "s":"open"}'
    expect(patched(text, [{ op: 'replace', path: '/s', value: 'closed' }])).toBe(
      text.replace('"open"', '"closed"'),
    )
  })

  it('finds names however they are written', () => {
    expect(patched('{"\\u0061":1}', [{ op: 'replace', path: '/a', value: 2 }])).toBe('{"\\u0061":2}')
  })

  it('moves and copies text, not what it means', () => {
    const text = '{"id": 12345678901234567890, "x":{}}'
    expect(patched(text, [{ op: 'copy', from: '/id', path: '/x/id' }])).toBe(
      '{"id": 12345678901234567890, "x":{"id":12345678901234567890}}',
    )
    expect(patched(text, [{ op: 'move', from: '/id', path: '/x/old' }])).toBe(
      '{"x":{"old":12345678901234567890}}',
    )
  })

  it('treats names of prototypes as names', () => {
    const added = patched('{}', [{ op: 'add', path: '/__proto__', value: { polluted: true } }])
    expect(added).toBe('{"__proto__":{"polluted":true}}')
    expect('polluted' in {}).toBe(false)
    expect(patched(added, [{ op: 'remove', path: '/__proto__/polluted' }])).toBe('{"__proto__":{}}')
  })

  it('compares numbers by all their digits', () => {
    const test = (text: string, value: string) =>
      patched(text, [{ op: 'test', path: '', value: parseExactly(value) }])
    expect(test('12345678901234567890', '12345678901234567890')).toBe('12345678901234567890')
    expect(test('12345678901234567891', '12345678901234567890')).toContain('refused')
    expect(test('1.50', '15e-1')).toBe('1.50')
    expect(test('{"b":[1.0],"a":null}', '{"a":null,"b":[1]}')).toBe('{"b":[1.0],"a":null}')
    expect(test('{"a":1,"b":2}', '{"a":1}')).toContain('refused')
    expect(test('[]', '{}')).toContain('refused')
    expect(test('"1"', '1')).toContain('refused')
    expect(test('null', 'false')).toContain('refused')
  })

  it('takes the last of several members with one name, and leaves no other behind', () => {
    const text = '{"a":1,"b":0, "a":{"x":2} ,"a":{"x":3}}'
    expect(patched(text, [{ op: 'test', path: '/a', value: { x: 3 } }])).toBe(text)
    expect(patched(text, [{ op: 'remove', path: '/a' }])).toBe('{"b":0}')
    expect(patched(text, [{ op: 'replace', path: '/a', value: 4 }])).toBe('{"b":0 ,"a":4}')
    expect(patched(text, [{ op: 'move', from: '/a', path: '/c' }])).toBe('{"b":0 ,"c":{"x":3}}')
    // Within it, nothing is said about the others.
    expect(patched(text, [{ op: 'replace', path: '/a/x', value: 4 }])).toBe(
      '{"a":1,"b":0, "a":{"x":2} ,"a":{"x":4}}',
    )
  })

  it('copes with any depth', () => {
    const text = `${'{"a":['.repeat(200_000)}1${']}'.repeat(200_000)}`
    expect(patched(text, [{ op: 'replace', path: '/a/0/a/0/a', value: 2 }])).toBe('{"a":[{"a":[{"a":2}]}]}')
  })

  it('does not grow without end by copies of copies', () => {
    const operations = Array.from({ length: 100 }, () => ({ op: 'copy', from: '', path: '/-' }))
    expect(patched('["0123456789"]', operations)).toContain('the payload would become too large')
  })
})

describe('a patch of a large document', () => {
  /** Milliseconds of this thread. */
  function workMsOf(act: () => void): number {
    const before = process.threadCpuUsage()
    act()
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1_000
  }

  const lines = JSON.stringify(Array.from({ length: 100_000 }, (_, i) => ({ sku: `sku-${i}` })))
  const patched = (text: string, path: string) => {
    const result = patchText(text, [{ op: 'replace', path, value: 1 }], 16 * 1_048_576)
    if (!result.ok) throw new Error(result.reason)
    expect(result.text).toHaveLength(text.length - '{"sku":"sku-99999"}'.length + 1)
  }

  it('costs the same at the bottom of 500 levels as at the top', () => {
    const deep = `${'{"a":'.repeat(500)}${lines}${'}'.repeat(500)}`
    const atTopMs = workMsOf(() => patched(lines, '/99999'))
    // 500 times as much when every level is read, or written, with all that lies below it.
    expect(workMsOf(() => patched(deep, `${'/a'.repeat(500)}/99999`))).toBeLessThan(20 * atTopMs + 500)
  })
})
