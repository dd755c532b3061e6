/**
 * Who may call what. Tokens come as `Authorization: Bearer <token>` and are known only by their SHA-256;
 * every configured token is compared in constant time, so that timing tells nothing about any of them. Browsers
 * that gave one at sign-in have a session instead (session/). Without configured tokens everything is open: the
 * server then listens on loopback only.
 */

import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock, Instant } from '../core/clock.ts'
import { BartlebyError, failure } from '../core/errors.ts'

/** From reading, over working with items, to configuring and purging: each may do what those before it may. */
export const ROLES = ['viewer', 'operator', 'admin'] as const

export type Role = (typeof ROLES)[number]

/** A token as a configuration has it: its SHA-256, never itself. */
export interface TokenEntry {
  readonly name: string
  readonly role: Role
  /** Lower-case hexadecimal digits. */
  readonly sha256: string
}

/** What a caller may act on, as far as the role goes: everything; everything but letters of Kafka; or these alone. */
export type Reach = 'all' | 'all-but-kafka' | 'kafka'

/** Whom a request comes from. */
export interface Caller {
  readonly name: string
  readonly role: Role
  /** Left out: everything. */
  readonly reach?: Reach
}

/** A token that is known here, with what it is good for. */
export type KnownToken = TokenEntry & Pick<Caller, 'reach'>

/** Everyone, while no tokens are configured. */
export const ANYONE: Caller = { name: 'anyone', role: 'admin' }

/** The same where the Kafka part has tokens: it trusts nobody without one, also not on this machine. */
export const ANYONE_BUT_KAFKA: Caller = { ...ANYONE, reach: 'all-but-kafka' }

/** Who comes without a token; null where tokens are asked for. */
export function visitorOf(tokens: readonly TokenEntry[], kafkaHashes: readonly string[]): Caller | null {
  if (tokens.length > 0) return null
  return kafkaHashes.length > 0 ? ANYONE_BUT_KAFKA : ANYONE
}

/** All tokens: those of Kafka reach its letters only, or add them to what everybody may do. History knows them by their number. */
export const knownTokens = (
  tokens: readonly TokenEntry[],
  kafkaHashes: readonly string[],
): readonly KnownToken[] => [
  ...tokens,
  ...kafkaHashes.map((sha256, index): KnownToken => {
    const name = `token#${index + 1}`
    return tokens.length > 0
      ? { name, sha256, role: 'operator', reach: 'kafka' }
      : { name, sha256, role: ANYONE.role, reach: 'all' }
  }),
]

/** Throws when letters of Kafka are beyond the caller's reach. */
export function requireKafka({ reach }: Caller): void {
  if (reach === 'all-but-kafka') throw failure('kafka_token_missing')
}

/** Schemes have no case. */
const SCHEME = /^bearer /i

/** True when the header may be sent at all; its scheme is checked even while everything is open. */
export const wellFormed = (authorization: string | undefined): boolean =>
  authorization === undefined || SCHEME.test(authorization)

export type Authenticate = (authorization: string | undefined) => Caller

/** Finds the caller of a request by its `Authorization` header. Without a right one it is the visitor; throws where there is none. */
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
    // No early end: the time taken must not depend on which token matched.
    for (const candidate of known) {
      if (timingSafeEqual(candidate.digest, digest)) found = candidate.caller
    }
    if (found !== undefined) return found
    if (visitor !== null) return visitor
    throw failure('token_unknown')
  }
}

/** The same for requests of an address, which cannot try many. */
export function counted(authenticate: Authenticate, wrongTokens: WrongTokens | undefined) {
  return (authorization: string | undefined, address: string): Caller => {
    try {
      const caller = authenticate(authorization)
      if (caller !== ANYONE && caller !== ANYONE_BUT_KAFKA) wrongTokens?.right(address, caller.name)
      return caller
    } catch (error) {
      if (error instanceof BartlebyError && error.code === 'token_unknown') wrongTokens?.wrong(address)
      throw error
    }
  }
}

/** The owner of a token. */
export const callerOf = ({ name, role, reach }: KnownToken): Caller => ({
  name,
  role: roleNamed(role),
  ...(reach === undefined ? {} : { reach }),
})

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

const WINDOW_US = 60_000_000n
/** Addresses that are remembered; the ones that were seen first are forgotten. */
const MOST_ADDRESSES = 10_000

interface KnownAddress {
  /** When the latest wrong ones were given, the oldest first. */
  wrongAt: readonly Instant[]
  /** The names of the tokens that were right. */
  readonly right: Set<string>
}

/**
 * Counts wrong tokens by the address that they come from, so that nobody can try many of them, and nobody is kept out by somebody elsewhere.
 * While there were too many, an address is let in with those tokens only that it has used before: a right one would tell that it is right.
 */
export class WrongTokens {
  readonly #clock: Clock
  readonly #most: number
  readonly #addresses = new Map<string, KnownAddress>()

  /** `most` within a minute, from one address. */
  constructor(clock: Clock, most: number) {
    this.#clock = clock
    this.#most = most
  }

  /** A right token was given, the one of this name; throws while there were too many wrong ones. */
  right(address: string, name: string): void {
    const known = this.#knownAt(address)
    if (known.right.has(name)) return
    this.#check(known)
    known.right.add(name)
  }

  /** A wrong token was given; throws when it is one too many. */
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
