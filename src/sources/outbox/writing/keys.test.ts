import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createKey } from './keys.ts'

describe('a key made of its parts', () => {
  it('is the one that a .NET producer makes', () => {
    expect(createKey('Tenant-1', 'workflow', '42', 'published', 0)).toBe(
      'ba73d97a-5b6f-e712-ae41-f39ca66495e4',
    )
    expect(createKey('t', 'order', 'urn:order:1', 'created', 1)).toBe('b4c95c76-db07-4f6c-4ab0-24e248cc0d22')
  })

  it('is the same for the same parts, whatever their case and however numbers are written', () => {
    const key = createKey('t', 'order', '17', 'placed', '3')
    expect(createKey('T', 'ORDER', '17', 'Placed', 3)).toBe(key)
    expect(createKey('t', 'order', 17, 'placed', 3n)).toBe(key)
    expect(createKey('t', 'order', '17', 'placed')).toBe(createKey('t', 'order', '17', 'placed', 0))
  })

  it('lowers letters one by one, as .NET does', () => {
    expect(createKey('t', 'order', 'ΟΔΟΣ', 'k')).toBe(createKey('t', 'order', 'οδοσ', 'k'))
    expect(createKey('t', 'order', 'İ', 'k')).not.toBe(createKey('t', 'order', 'i\u0307', 'k'))
  })

  it('differs when any part does, also where parts could run into each other', () => {
    const part = fc.string({
      minLength: 1,
      maxLength: 6,
      unit: fc.constantFrom('a', 'b', ':', '%', '2', '5'),
    })
    const parts = fc.tuple(part, part, part, part, part)
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const same = one.join('\n') === other.join('\n')
        expect(createKey(...one) === createKey(...other)).toBe(same)
      }),
    )
  })

  it.each(['tenantId', 'category', 'entityId', 'kind', 'version'])('is refused when %s is empty', (name) => {
    const part = (of: string) => (of === name ? '' : 'x')
    const make = () =>
      createKey(part('tenantId'), part('category'), part('entityId'), part('kind'), part('version'))
    expect(make).toThrow(expect.objectContaining({ code: 'outbox_key_part_empty' }))
    expect(make).toThrow(`${name} is empty`)
  })

  it.each([1.5, Number.NaN, 2 ** 60])(
    'is refused for the version %s, which two producers may print otherwise',
    (version) => {
      expect(() => createKey('t', 'order', '1', 'k', version)).toThrow(/version is neither/)
    },
  )
})
