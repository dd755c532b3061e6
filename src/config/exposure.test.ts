import { describe, expect, it } from 'vitest'
import { ConfigError } from '../core/settings/config-error.ts'
import { checkExposure } from './load.ts'

const token = { name: 'ops', role: 'admin', sha256: 'a'.repeat(64) } as const

describe('a server without tokens', () => {
  it.each([
    '127.0.0.1',
    '127.8.9.10',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    'localhost',
    'LOCALHOST',
  ])('may listen on %s', (host) => {
    expect(() => checkExposure({ host, auth: { tokens: [] } })).not.toThrow()
  })

  it.each([
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '128.0.0.1',
    '::ffff:10.0.0.1',
    'example.com',
    '127.0.0.1.example.com',
  ])('may not listen on %s, and is told what to do', (host) => {
    const start = () => checkExposure({ host, auth: { tokens: [] } })
    expect(start).toThrow(ConfigError)
    expect(start).toThrow(`host: '${host}'`)
    expect(start).toThrow(/bartleby token create.*auth\.tokens.*--config FILE.*127\.0\.0\.1/)
  })
})

describe('a server with tokens', () => {
  it('may listen anywhere', () => {
    expect(() => checkExposure({ host: '0.0.0.0', auth: { tokens: [token] } })).not.toThrow()
  })
})
