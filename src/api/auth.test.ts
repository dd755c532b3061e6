import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { failure } from '../core/errors.ts'
import {
  authenticator,
  type Caller,
  isBounded,
  knownTokens,
  type OwnTokens,
  reaches,
  reachName,
  requireReach,
  requireRole,
  type TokenEntry,
  visitorOf,
} from './auth.ts'

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

describe('a source with tokens of its own', () => {
  const guarded = (source: string): OwnTokens => ({
    source,
    tokens: [{ name: `${source}#1`, sha256: sha256(source) }],
    routes: [],
    missing: () => failure('kafka_token_missing'),
  })
  const own = [guarded('a'), guarded('b')]
  const told = ({ reach }: Caller) => reachName(reach)
  const refusal = code('kafka_token_missing')

  it('trusts nobody without one of them, also where everything else is open', () => {
    const visitor = visitorOf([], own)
    if (visitor === null) throw failure('internal')
    expect([told(visitor), isBounded(visitor)]).toEqual(['all-but-a-and-b', true])
    expect(() => requireReach(visitor, ['b', 'c'])).toThrow(refusal)
    expect(() => requireReach(visitor, null)).toThrow(refusal)
    expect(() => requireReach(visitor, ['c'])).not.toThrow()
    expect(visitorOf([], [])).toEqual({ name: 'anyone', role: 'admin' })
    expect(visitorOf(tokens, own)).toBeNull()
  })

  it('has its tokens add its letters to what everybody may do', () => {
    const caller = authenticator(knownTokens([], own))('Bearer a')
    expect([caller.name, caller.role, told(caller)]).toEqual(['a#1', 'admin', 'all-but-b'])
    expect(['a', 'b', 'c'].map((source) => reaches(caller, source))).toEqual([true, false, true])
    expect(told(authenticator(knownTokens([], [guarded('a')]))('Bearer a'))).toBe('all')
  })

  it('has them reach its letters alone where the server has tokens, which reach all', () => {
    const authenticate = authenticator(knownTokens(tokens, own))
    const caller = authenticate('Bearer a')
    expect([caller.role, told(caller), isBounded(caller)]).toEqual(['operator', 'a', false])
    expect(['a', 'b', 'c'].map((source) => reaches(caller, source))).toEqual([true, false, false])
    expect(told(authenticate('Bearer work'))).toBe('all')
  })
})
