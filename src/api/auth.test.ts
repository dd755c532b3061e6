import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { TokenEntry } from './auth.ts'
import { authenticator, requireRole } from './auth.ts'

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex')
const tokens: readonly TokenEntry[] = [
  { name: 'dashboard', role: 'viewer', sha256: sha256('look') },
  { name: 'workers', role: 'operator', sha256: sha256('work') },
  { name: 'chief', role: 'admin', sha256: sha256('rule') },
]
const code = (expected: string) => expect.objectContaining({ code: expected })

describe('a server with tokens', () => {
  const authenticate = authenticator(tokens)

  it('knows each caller by the token', () => {
    expect(authenticate('Bearer look')).toEqual({ name: 'dashboard', role: 'viewer' })
    expect(authenticate('bearer look')).toEqual(authenticate('BEARER look'))
    expect(authenticate('bEaReR look').name).toBe('dashboard')
    expect(authenticate('Bearer rule')).toEqual({ name: 'chief', role: 'admin' })
  })

  it('refuses a call without a token, with an unknown one, or with another scheme', () => {
    expect(() => authenticate(undefined)).toThrow(code('token_missing'))
    expect(() => authenticate('Bearer ')).toThrow(code('token_missing'))
    expect(() => authenticate('Bearer LOOK')).toThrow(code('token_unknown'))
    expect(() => authenticate('Basic bG9vaw==')).toThrow(code('authorization_malformed'))
  })

  it('never puts the token into the error', () => {
    expect(() => authenticate('Bearer s3cret')).toThrow(expect.not.stringContaining('s3cret'))
  })
})

describe('a server without tokens', () => {
  it('lets everyone do everything, but still checks the form of the header', () => {
    const authenticate = authenticator([])
    expect(authenticate(undefined).role).toBe('admin')
    expect(authenticate('Bearer anything').role).toBe('admin')
    expect(() => authenticate('Basic x')).toThrow(code('authorization_malformed'))
  })
})

describe('a role', () => {
  it('includes the roles below it and none above', () => {
    const caller = { name: 'workers', role: 'operator' as const }
    expect(() => requireRole(caller, 'viewer')).not.toThrow()
    expect(() => requireRole(caller, 'operator')).not.toThrow()
    expect(() => requireRole(caller, 'admin')).toThrow(
      "permission denied; this call needs the role 'admin' and your token has 'operator'",
    )
  })
})
