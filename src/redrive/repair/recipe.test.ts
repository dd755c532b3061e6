import { describe, expect, it } from 'vitest'
import { BartlebyError } from '../../core/errors.ts'
import { parseExactly } from '../../core/json/exact.ts'
import { parseRecipe, readRecipe, showRecipe } from './recipe.ts'

/** Where and why a recipe is refused. */
function refusal(value: unknown): string {
  try {
    parseRecipe(value)
  } catch (error) {
    if (error instanceof BartlebyError && error.code === 'parameter_invalid') return error.message
    throw error
  }
  throw new Error('it was not refused')
}

const patch = (...operations: unknown[]) => ({ patch: operations })
let nested: unknown = 1
for (let level = 0; level < 600; level++) nested = [nested]

describe('a recipe', () => {
  it.each<[unknown, string]>([
    [null, 'repair is invalid; it is null, give an object'],
    [[], 'repair is invalid; it is a list'],
    [{}, 'repair is invalid; it changes nothing, give patch, mapping or headers'],
    [{ patch: null }, 'repair is invalid; it changes nothing'],
    [{ patches: [] }, 'repair.patches is invalid; it is none of patch, mapping, headers'],
    [JSON.parse('{"__proto__":1}'), 'repair.__proto__ is invalid; it is none of'],
    [{ patch: [{ op: 'remove', path: '/a' }], mapping: '$' }, 'repair is invalid; it has both'],
    [{ patch: {} }, 'repair.patch is invalid; it is an object, give a list'],
    [{ patch: [] }, 'repair.patch is invalid; it is empty'],
    [patch(...Array(101).fill({ op: 'remove', path: '/a' })), 'it has 101 operations, at most 100'],
    [patch('remove /a'), 'repair.patch[0] is invalid; it is a string'],
    [patch({ path: '/a' }), 'repair.patch[0].op is invalid; it is missing, give one of add, remove'],
    [patch({ op: 'delete', path: '/a' }), `repair.patch[0].op is invalid; it is 'delete'`],
    [patch({ op: 'remove', path: '/a' }, { op: 'remove' }), 'repair.patch[1].path is invalid; it is missing'],
    [
      patch({ op: 'remove', path: 'a' }),
      `repair.patch[0].path is invalid; it must be empty or begin with '/'`,
    ],
    [patch({ op: 'remove', path: '/a~2' }), `repair.patch[0].path is invalid; '~' must be followed by`],
    [
      patch({ op: 'remove', path: '/a'.repeat(513) }),
      'repair.patch[0].path is invalid; it has more than 512',
    ],
    [patch({ op: 'remove', path: '' }), 'repair.patch[0].path is invalid; the whole payload'],
    [patch({ op: 'add', path: '/a' }), 'repair.patch[0].value is invalid; it is missing'],
    [patch({ op: 'add', path: '/a', value: [2 ** 53] }), 'it has the number 9007199254740992, which may'],
    [patch({ op: 'add', path: '/a', value: nested }), 'it is nested more than 512 levels deep'],
    [patch({ op: 'copy', path: '/a' }), 'repair.patch[0].from is invalid; it is missing'],
    [patch({ op: 'move', from: '/a', path: '/a/b' }), 'repair.patch[0].path is invalid; it lies within from'],
    [{ mapping: 5 }, 'repair.mapping is invalid; it is a number'],
    [{ mapping: ' ' }, 'repair.mapping is invalid; it is empty'],
    [{ mapping: 'x'.repeat(16_385) }, 'repair.mapping is invalid; it has 16385 bytes, at most 16384'],
    [{ mapping: '{\n  "a": b +\n}' }, 'at line 3, character 1'],
    [
      { mapping: `${'('.repeat(8_000)}1${')'.repeat(8_000)}` },
      'repair.mapping is invalid; it is nested too deeply',
    ],
    [
      { mapping: '{ "at": $now() }' },
      'repair.mapping is invalid; $now is not available: it gives something else',
    ],
    [{ mapping: '$map(a, $random)' }, '$random is not available'],
    [{ mapping: '$eval(a)' }, '$eval is not available'],
    [{ headers: {} }, 'repair.headers is invalid; it changes nothing'],
    [{ headers: { set: {}, remove: [] } }, 'repair.headers is invalid; it changes nothing'],
    [{ headers: { add: {} } }, 'repair.headers.add is invalid; it is none of set, remove'],
    [{ headers: { set: { colour: 'red' } } }, 'repair.headers.set.colour is invalid; it is none of encoding'],
    [{ headers: { set: { kind: null } } }, 'repair.headers.set.kind is invalid; it is null, give a text'],
    [
      { headers: { set: { kind: '\ud800' } } },
      'repair.headers.set.kind is invalid; it holds half a character',
    ],
    [{ headers: { remove: ['kind', 'colour'] } }, `repair.headers.remove[1] is invalid; it is 'colour'`],
    [{ headers: { remove: ['kind', 'kind'] } }, `repair.headers.remove[1] is invalid; 'kind' is named twice`],
    [{ headers: { set: { kind: 'a' }, remove: ['kind'] } }, 'kind is both in set and in remove'],
  ])('is refused with the place and the reason: $1', (value, said) => {
    expect(refusal(value)).toContain(said)
  })

  it('is named as the caller names it', () => {
    expect(() => parseRecipe({}, 'body.repair')).toThrow('body.repair is invalid;')
  })

  it('leaves out members that its operations do not know, as RFC 6902 demands', () => {
    const { patch } = parseRecipe({ patch: [{ op: 'remove', path: '/a', value: 1, note: 'x' }] })
    expect(patch).toEqual([{ op: 'remove', path: '/a' }])
  })

  it('goes through the store as it was asked for, digit by digit', () => {
    const text =
      '{"patch":[{"op":"test","path":"/id","value":12345678901234567890},{"op":"add","path":"/x","value":null}],' +
      '"headers":{"set":{"kind":"order"},"remove":["reference"]}}'
    const recipe = parseRecipe(parseExactly(text))
    const stored = JSON.stringify(showRecipe(recipe))
    expect(stored).toBe(`${text.slice(0, -1)},"version":"${recipe.version}"}`)
    expect(readRecipe(stored)).toEqual(recipe)
    expect(JSON.stringify(readRecipe(JSON.stringify(recipe)))).toBe(JSON.stringify(recipe))
    const mapping = parseRecipe({ mapping: '{ "a": b }' })
    expect(readRecipe(JSON.stringify(showRecipe(mapping)))).toEqual(mapping)
    expect(readRecipe(JSON.stringify(mapping))).toEqual(mapping)
  })

  it('has a version that says what it does, not how it was written', () => {
    const { version } = parseRecipe({
      patch: [{ op: 'add', path: '/a', value: { b: 1, c: 2 } }],
      headers: { set: {}, remove: ['reference', 'kind'] },
    })
    expect(version).toMatch(/^1-[0-9a-f]{16}$/)
    const same = parseRecipe({
      headers: { remove: ['kind', 'reference'] },
      mapping: null,
      patch: [{ path: '/a', value: { c: 2, b: 1 }, op: 'add' }],
    })
    expect(same.version).toBe(version)
    const other = parseRecipe({ patch: [{ op: 'add', path: '/a', value: { b: 1, c: 3 } }] })
    expect(other.version).not.toBe(version)
  })
})
