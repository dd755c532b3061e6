/**
 * Who may call what. Tokens come as `Authorization: Bearer <token>` and are known by their SHA-256; all are compared in constant time.
 * Browsers that gave one at sign-in have a session instead. Without configured tokens everything is open, and the server listens on
 * loopback only. Sources may ask for tokens of their own, also there.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock, Instant } from '../core/clock.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import { ROLES, type Role } from '../core/roles.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may use the route. A path without a route asks only for a known token. */
    readonly role?: Role | 'open'
    /** The answer ends when the client goes, so its duration says nothing. */
    readonly isStream?: boolean
  }
  interface FastifyRequest {
    /** undefined on open routes, which ask nobody. */
    caller?: Caller
    /** The client's address, as limits count it. */
    clientAddress: string
  }
}

/** A configured token: its SHA-256, never itself. */
export interface TokenEntry {
  readonly name: string
  readonly role: Role
  readonly sha256: string
}

/** Tokens of a source that trusts nobody without one, not even on this machine. */
export interface OwnTokens {
  /** Also the engine of its letters. */
  readonly source: string
  readonly tokens: readonly Omit<TokenEntry, 'role'>[]
  /** Prefixes of routes below `/api/` that are on its letters alone. */
  readonly routes: readonly string[]
  /** For a caller that acts on its letters without one. */
  readonly missing: () => BartlebyError
}

/** What a caller may act on: letters of one source, or everything but those of some. */
type Reach = { readonly only: string } | { readonly allBut: readonly OwnTokens[] }

export interface Caller {
  readonly name: string
  readonly role: Role
  /** Default: everything. */
  readonly reach?: Reach
}

export type KnownToken = TokenEntry & Pick<Caller, 'reach'>

/** Everyone, while no tokens are configured. */
export const ANYONE: Caller = { name: 'anyone', role: 'admin' }

const allBut = (guarded: readonly OwnTokens[]): Pick<Caller, 'reach'> =>
  guarded.length === 0 ? {} : { reach: { allBut: guarded } }

/** The caller without a token; null where tokens are asked for. */
export function visitorOf(tokens: readonly TokenEntry[], own: readonly OwnTokens[]): Caller | null {
  if (tokens.length > 0) return null
  return own.length === 0 ? ANYONE : { ...ANYONE, ...allBut(own) }
}

/** All tokens. Those of a source reach its letters only, or add them to what everybody may do. */
export const knownTokens = (
  tokens: readonly TokenEntry[],
  own: readonly OwnTokens[],
): readonly KnownToken[] => [
  ...tokens,
  ...own.flatMap((guarded) =>
    guarded.tokens.map((token): KnownToken => {
      if (tokens.length > 0) return { ...token, role: 'operator', reach: { only: guarded.source } }
      return { ...token, role: ANYONE.role, ...allBut(own.filter((other) => other !== guarded)) }
    }),
  ),
]

/** The reach in words for callers. */
export function reachName(reach: Reach | undefined): string {
  if (reach === undefined) return 'all'
  return 'only' in reach ? reach.only : `all-but-${reach.allBut.map(({ source }) => source).join('-and-')}`
}

/** Whether there are letters beyond the caller's reach, whatever the role. */
export const isBounded = ({ reach }: Caller): boolean => reach !== undefined && 'allBut' in reach

export const reaches = ({ reach }: Pick<Caller, 'reach'>, source: string): boolean => {
  if (reach === undefined) return true
  return 'only' in reach ? reach.only === source : reach.allBut.every((guarded) => guarded.source !== source)
}

/** Throws when letters of one of these sources are beyond the caller's reach; null means all sources. */
export function requireReach({ reach }: Caller, sources: readonly string[] | null): void {
  if (reach === undefined || 'only' in reach) return
  const beyond = reach.allBut.find(({ source }) => sources === null || sources.includes(source))
  if (beyond !== undefined) throw beyond.missing()
}

/** Schemes have no case. */
const SCHEME = /^bearer /i

/** The scheme is checked even while everything is open. */
export const wellFormed = (authorization: string | undefined): boolean =>
  authorization === undefined || SCHEME.test(authorization)

export type Authenticate = (authorization: string | undefined) => Caller

/** Finds the caller by the `Authorization` header. Without a right one it is the visitor; throws where there is none. */
export function authenticator(
  tokens: readonly KnownToken[],
  visitor: Caller | null = tokens.length === 0 ? ANYONE : null,
): Authenticate {
  const known = tokens.map((token) => ({
    caller: callerOf(token),
    digest: Buffer.from(token.sha256, 'hex'),
  }))
  return (authorization) => {
    if (!wellFormed(authorization)) throw failure('authorization_malformed')
    if (known.length === 0 && visitor !== null) return visitor
    const token = authorization?.replace(SCHEME, '').trim()
    if (token === undefined || token === '') {
      if (visitor !== null) return visitor
      throw failure('token_missing')
    }
    const digest = hash('sha256', token, 'buffer')
    let found: Caller | undefined
    // No early exit: the time taken must not tell which token matched.
    for (const candidate of known) {
      if (timingSafeEqual(candidate.digest, digest)) found = candidate.caller
    }
    if (found !== undefined) return found
    if (visitor !== null) return visitor
    throw failure('token_unknown')
  }
}

/** The same, with wrong tokens counted by address. */
export function countingAuthenticator(
  tokens: readonly KnownToken[],
  visitor: Caller | null,
  wrongTokens: WrongTokens | undefined,
) {
  const authenticate = authenticator(tokens, visitor)
  return (authorization: string | undefined, address: string): Caller => {
    try {
      const caller = authenticate(authorization)
      if (caller !== visitor) wrongTokens?.right(address, caller.name)
      return caller
    } catch (error) {
      if (error instanceof BartlebyError && error.code === 'token_unknown') wrongTokens?.wrong(address)
      throw error
    }
  }
}

export const callerOf = ({ name, role, reach }: KnownToken): Caller => ({
  name,
  role,
  ...(reach === undefined ? {} : { reach }),
})

export function requireRole(caller: Caller, needed: Role): void {
  if (ROLES.indexOf(caller.role) < ROLES.indexOf(needed)) {
    throw failure('role_insufficient', { needed, role: caller.role })
  }
}

const WINDOW_US = 60_000_000n
/** Addresses remembered; the first seen is forgotten first. */
const MOST_ADDRESSES = 10_000

interface KnownAddress {
  /** Times of the latest wrong tokens, the oldest first. */
  wrongAt: readonly Instant[]
  readonly right: Set<string>
}

/**
 * Counts wrong tokens by address, so that nobody can try many and nobody is kept out by somebody elsewhere. While there are too many, an
 * address is let in only with tokens that it has used before: a new right one would reveal that it is right.
 */
export class WrongTokens {
  readonly #clock: Clock
  readonly #most: number
  readonly #addresses = new Map<string, KnownAddress>()

  /** `most` per minute and address. */
  constructor(clock: Clock, most: number) {
    this.#clock = clock
    this.#most = most
  }

  /** Throws while there are too many wrong ones, unless this token was right before. */
  right(address: string, name: string): void {
    const known = this.#knownAt(address)
    if (known.right.has(name)) return
    this.#check(known)
    known.right.add(name)
  }

  /** Throws when it is one too many. */
  wrong(address: string): void {
    const known = this.#knownAt(address)
    this.#check(known)
    known.wrongAt = [...known.wrongAt, this.#clock.now()].slice(-this.#most)
  }

  #check({ wrongAt }: KnownAddress): void {
    const [oldest] = wrongAt
    if (oldest === undefined || wrongAt.length < this.#most) return
    const rest = oldest + WINDOW_US - this.#clock.now()
    if (rest > 0n) throw failure('wrong_tokens_limited', { seconds: Math.ceil(Number(rest) / 1e6) })
  }

  #knownAt(address: string): KnownAddress {
    const known = this.#addresses.get(address)
    if (known !== undefined) return known
    const [first] = this.#addresses.keys()
    if (first !== undefined && this.#addresses.size >= MOST_ADDRESSES) this.#addresses.delete(first)
    const fresh: KnownAddress = { wrongAt: [], right: new Set() }
    this.#addresses.set(address, fresh)
    return fresh
  }
}
