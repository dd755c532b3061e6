import { describe, expect, it } from 'vitest'
import { ConfigError, withoutPassword } from '../core/settings/config-error.ts'
import { parseStoreUrl } from './store-url.ts'

describe('a store URL', () => {
  it.each([
    ['sqlite:./data/bartleby.db', { kind: 'sqlite', path: './data/bartleby.db' }],
    ['sqlite:/var/lib/bartleby.db', { kind: 'sqlite', path: '/var/lib/bartleby.db' }],
    ['sqlite:///var/lib/bartleby.db', { kind: 'sqlite', path: '/var/lib/bartleby.db' }],
    ['sqlite:my file?.db', { kind: 'sqlite', path: 'my file?.db' }],
    ['sqlite::memory:', { kind: 'memory' }],
    ['postgres://u:p@host:5432/db', { kind: 'postgres', url: 'postgres://u:p@host:5432/db' }],
    ['postgresql://host/db', { kind: 'postgres', url: 'postgresql://host/db' }],
    ['postgres:///db?host=/run/postgresql', { kind: 'postgres', url: 'postgres:///db?host=/run/postgresql' }],
  ])('%s names its store', (text, store) => {
    expect(parseStoreUrl(text)).toEqual(store)
  })

  it.each([
    '',
    'sqlite:',
    'sqlite: ',
    'sqlite://file.db',
    'sqlite:a\0b',
    'mysql://host/db',
    'postgres:host',
    './file.db',
  ])('%j is refused with what is allowed', (text) => {
    expect(() => parseStoreUrl(text)).toThrow(ConfigError)
    expect(() => parseStoreUrl(text)).toThrow(/allowed: 'sqlite:PATH', 'sqlite::memory:' or 'postgres:/)
  })

  it.each([
    ['postgres://bob:s3cret@host/db', 'postgres://bob:***@host/db'],
    ['postgres://bob:s3c@ret/x@host/db', 'postgres://bob:***@host/db'],
    ['postgress:/bob:s3cret@host/db', 'postgress:***@host/db'],
    ['bob:s3cret@host', 'bob:***@host'],
    ['postgres://:s3cret@host', 'postgres://:***@host'],
    ['postgres://host/db?user=bob&password=s3cret&x=1', 'postgres://host/db?user=bob&password=***&x=1'],
    ['postgres://bob@host/db', 'postgres://bob@host/db'],
    ['sqlite:./data/bartleby.db', 'sqlite:./data/bartleby.db'],
  ])('%s is shown as %s', (url, safe) => {
    expect(withoutPassword(url)).toBe(safe)
  })
})
