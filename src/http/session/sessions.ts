/**
 * Sessions of browsers: a cookie says who signed in and until when; nothing is stored. It is sealed with a key made of the store's secret
 * and the token's digest: every server on the store knows it, a restart does not end it, removing the token from the configuration does,
 * and the configuration alone cannot make one.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { type Caller, callerOf, type KnownToken } from '../../api/auth.ts'
import { type Clock, type Instant, instant, later, microseconds } from '../../core/clock.ts'
import { sameToken } from '../../core/same-token.ts'

export interface Session {
  readonly caller: Caller
  readonly deadline: Instant
}

interface SessionsOptions {
  readonly tokens: readonly KnownToken[]
  /** The same on every server of the store. */
  readonly secret: Uint8Array
  readonly clock: Clock
}

interface Content {
  readonly name: string
  readonly deadline: Instant
}

/** Keeps these seals apart from any others by the same keys. */
const PURPOSE = 'bartleby session 1'
/** Twice what the longest name of a token takes. */
const MAX_CHARACTERS = 512

const seal = (key: Uint8Array, payload: string): string =>
  createHmac('sha256', key).update(payload).digest('base64url')

export class Sessions {
  readonly #clock: Clock
  readonly #callers: ReadonlyMap<string, { readonly caller: Caller; readonly key: Uint8Array }>
  /** Seals cookies without a known token, so that they take as long as a wrong seal. */
  readonly #nobody = randomBytes(32)

  constructor({ tokens, secret, clock }: SessionsOptions) {
    this.#clock = clock
    this.#callers = new Map(
      tokens.map((token) => {
        const key = createHmac('sha256', secret).update(`${PURPOSE}\n${token.sha256}`).digest()
        return [token.name, { caller: callerOf(token), key }]
      }),
    )
  }

  /** The cookie's value for the owner of the token with this name. */
  begin(name: string): string {
    const known = this.#callers.get(name)
    if (known === undefined) throw new Error(`no token is named '${name}'`)
    const deadline = later(this.#clock.now(), microseconds(SESSION_SECONDS))
    const payload = encode({ name, deadline })
    return `${payload}.${seal(known.key, payload)}`
  }

  /** null for a missing, forged or expired session, or one of a removed token. */
  find(cookies: string | undefined): Session | null {
    for (const value of cookiesIn(cookies)) {
      const session = this.#open(value)
      if (session !== null) return session
    }
    return null
  }

  #open(value: string): Session | null {
    if (value.length > MAX_CHARACTERS) return null
    const [payload = '', sealed = '', ...rest] = value.split('.')
    const content = decode(payload)
    if (content === null || rest.length > 0) return null
    const known = this.#callers.get(content.name)
    const isGenuine = sameToken(seal(known?.key ?? this.#nobody, payload), sealed)
    if (known === undefined || !isGenuine || this.#clock.now() >= content.deadline) return null
    return { caller: known.caller, deadline: content.deadline }
  }
}

/** Instants exceed what JSON holds as numbers. */
const encode = ({ name, deadline }: Content): string =>
  Buffer.from(JSON.stringify({ name, deadline: String(deadline) })).toString('base64url')

function decode(payload: string): Content | null {
  try {
    const content: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString())
    if (typeof content !== 'object' || content === null) return null
    const { name, deadline } = content as Readonly<Record<string, unknown>>
    if (typeof name !== 'string' || typeof deadline !== 'string' || !/^\d{1,18}$/.test(deadline)) return null
    return { name, deadline: instant(BigInt(deadline)) }
  } catch {
    return null
  }
}

/** Out of reach of scripts, and sent to no other site. */
export const COOKIE_NAME = 'bartleby_session'

/** A working day: whoever signs in in the morning is still in at its end. */
export const SESSION_SECONDS = 12 * 60 * 60

/** Browsers keep a secure cookie only from a page over TLS, which ends before this server; the origin tells. */
const attributesFor = (origin: string | undefined): string =>
  `Path=/; HttpOnly; SameSite=Strict${origin?.startsWith('https://') === true ? '; Secure' : ''}`

/** Begins a session, for a page of this origin. */
export const settingCookie = (value: string, origin: string | undefined): string =>
  `${COOKIE_NAME}=${value}; ${attributesFor(origin)}; Max-Age=${SESSION_SECONDS}`

export const clearingCookie = (origin: string | undefined): string =>
  `${COOKIE_NAME}=; ${attributesFor(origin)}; Max-Age=0`

/** More of one name no honest browser sends. */
const MOST_COOKIES = 4

/** Several are possible: another site below the same domain can add one of this name, and must not keep anybody out with it. */
function cookiesIn(header: string | undefined): readonly string[] {
  const values: string[] = []
  for (const pair of header?.split(';') ?? []) {
    const end = pair.indexOf('=')
    if (end > 0 && pair.slice(0, end).trim() === COOKIE_NAME) values.push(pair.slice(end + 1).trim())
  }
  return values.slice(0, MOST_COOKIES)
}
