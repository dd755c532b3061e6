/**
 * Who may call what. Tokens come as `Authorization: Bearer <token>` and are known only by their SHA-256;
 * every configured token is compared in constant time, so that timing tells nothing about any of them. Browsers
 * that gave one at sign-in have a session instead (session/). Without configured tokens everything is open: the
 * server then listens on loopback only.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { ROLES, type TokenEntry } from '../config/index.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import type { WrongTokens } from './wrong-tokens.ts'

/** Each may do what those before it may: `viewer`, `operator`, `admin`. */
export type Role = (typeof ROLES)[number]

/** Whom a request comes from. */
export interface Caller {
  readonly name: string
  readonly role: Role
}

/** Everyone, while no tokens are configured. */
export const ANYONE: Caller = { name: 'anyone', role: 'admin' }

/** Schemes have no case. */
const SCHEME = /^bearer /i

/** True when the header may be sent at all; its scheme is checked even while everything is open. */
export const wellFormed = (authorization: string | undefined): boolean =>
  authorization === undefined || SCHEME.test(authorization)

export type Authenticate = (authorization: string | undefined) => Caller

/** Finds the caller of a request by its `Authorization` header; throws when there is none. */
export function authenticator(tokens: readonly TokenEntry[]): Authenticate {
  const known = tokens.map((token) => ({
    caller: callerOf(token),
    digest: Buffer.from(token.sha256, 'hex'),
  }))
  return (authorization) => {
    if (!wellFormed(authorization)) throw failure('authorization_malformed')
    if (known.length === 0) return ANYONE
    const token = authorization?.replace(SCHEME, '').trim()
    if (token === undefined || token === '') throw failure('token_missing')
    const digest = hash('sha256', token, 'buffer')
    let found: Caller | undefined
    // No early end: the time taken must not depend on which token matched.
    for (const candidate of known) {
      if (timingSafeEqual(candidate.digest, digest)) found = candidate.caller
    }
    if (found === undefined) throw failure('token_unknown')
    return found
  }
}

/** The same for requests of an address, which cannot try many. */
export function counted(authenticate: Authenticate, wrongTokens: WrongTokens | undefined) {
  return (authorization: string | undefined, address: string): Caller => {
    try {
      const caller = authenticate(authorization)
      if (caller !== ANYONE) wrongTokens?.right(address, caller.name)
      return caller
    } catch (error) {
      if (error instanceof BartlebyError && error.code === 'token_unknown') wrongTokens?.wrong(address)
      throw error
    }
  }
}

/** The owner of a token. */
export const callerOf = ({ name, role }: TokenEntry): Caller => ({ name, role: roleNamed(role) })

function roleNamed(name: string): Role {
  const role = ROLES.find((known) => known === name)
  if (role === undefined) throw new Error(`no role is named '${name}'`)
  return role
}

/** Throws unless the caller's role includes what the call needs. */
export function requireRole(caller: Caller, needed: Role): void {
  if (ROLES.indexOf(caller.role) < ROLES.indexOf(needed)) {
    throw failure('role_insufficient', { needed, role: caller.role })
  }
}
