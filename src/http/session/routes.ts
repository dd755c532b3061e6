/** `/api/session`: who the caller is and what this server is, signing in with a token, and signing out. No token needed. */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import {
  ANYONE,
  type Caller,
  countingAuthenticator,
  type KnownToken,
  reachName,
  type WrongTokens,
} from '../../api/auth.ts'
import { type ApiScope, type OpenApiCall, serveApi } from '../../api/calls.ts'
import { refuseUnknownFields, requiredText } from '../../api/json-body.ts'
import { BOOLEAN, textUpTo } from '../../api/shapes.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { VERSION } from '../../core/version.ts'
import type { DemoSignatures } from '../../demo/story/story.ts'
import type { NamedSource } from '../../sources/source-module.ts'
import { clearingCookie, type Sessions, settingCookie } from './sessions.ts'
import { SESSION, type Session } from './shapes.ts'

/** What the console says about a server before sign-in. */
interface ServerFace {
  readonly environment: Session['environment']
  /** Sources of letters, and which of them this server has. */
  readonly sources: readonly Pick<NamedSource, 'name' | 'title' | 'http'>[]
  /** null unless this server plays the demo. */
  readonly demo: DemoSignatures | null
}

interface SessionRoutesOptions extends ApiScope {
  readonly tokens: readonly KnownToken[]
  /** The caller without a token; null where tokens are asked for. */
  readonly visitor: Caller | null
  /** null where there are no tokens at all: then everybody is signed in. */
  readonly sessions: Sessions | null
  readonly face: ServerFace
  readonly wrongTokens: WrongTokens
  readonly log: Log
}

const MAX_TOKEN_CHARACTERS = 4_096
const MAX_BODY_BYTES = 16_384

export async function sessionRoutes(app: FastifyInstance, options: SessionRoutesOptions): Promise<void> {
  serveApi(app, options, sessionCalls(options))
}

function sessionCalls({
  tokens,
  visitor,
  sessions,
  face,
  wrongTokens,
  log,
}: SessionRoutesOptions): readonly OpenApiCall[] {
  /** Of sources that not every server has. */
  const presence = Object.fromEntries(
    face.sources.flatMap(({ name, http }) => (http?.isPresent ? [[name, http.isPresent()]] : [])),
  )
  const navigation = face.sources.map(({ name, title }) => ({ name, title, present: presence[name] ?? true }))
  const known = Object.keys(presence).map((name) => [name, BOOLEAN])
  const shape = Type.Object({ ...SESSION.properties, sources: Type.Object(Object.fromEntries(known)) })
  const authenticate = countingAuthenticator(tokens, null, wrongTokens)

  const view = (caller: Caller | null): Session => ({
    signedIn: caller !== null,
    needsToken: visitor === null,
    name: caller?.name ?? null,
    role: caller?.role ?? null,
    reach: caller === null ? null : reachName(caller.reach),
    version: VERSION,
    environment: face.environment,
    sources: presence,
    navigation,
    demo: face.demo,
  })

  const callerWith = ({ authorization, cookie }: IncomingHttpHeaders, address: string): Caller | null => {
    if (sessions === null) return ANYONE
    if (authorization === undefined) return sessions.find(cookie)?.caller ?? visitor
    try {
      return authenticate(authorization, address)
    } catch (error) {
      if (error instanceof BartlebyError && error.code !== 'wrong_tokens_limited') return visitor
      throw error
    }
  }

  const ownerOf = (token: string, address: string): Caller => {
    try {
      return authenticate(`Bearer ${token}`, address)
    } catch (error) {
      log.warn({}, 'a sign-in was refused; its token is not known')
      throw error
    }
  }

  return [
    {
      method: 'GET',
      path: '/api/session',
      role: 'open',
      operationId: 'session.read',
      tag: 'session',
      summary: 'Who the caller is, and what this server is',
      data: shape,
      answer: async ({ headers, address }) => ({ status: 200, data: view(callerWith(headers, address)) }),
    },
    {
      method: 'POST',
      path: '/api/session',
      role: 'open',
      bodyLimit: MAX_BODY_BYTES,
      operationId: 'session.begin',
      tag: 'session',
      summary: 'Sign a browser in with a token: the cookie that is set stands in for it for twelve hours',
      body: Type.Object({ token: textUpTo(MAX_TOKEN_CHARACTERS) }),
      failures: [401],
      data: shape,
      answer: async ({ body: { fields }, headers: { origin }, address }) => {
        refuseUnknownFields(fields, ['token'])
        const token = requiredText(fields, 'token', { max: MAX_TOKEN_CHARACTERS })
        if (sessions === null) return { status: 200, data: view(ANYONE) }
        const owner = ownerOf(token, address)
        log.info({ name: owner.name, role: owner.role }, 'signed in')
        return {
          status: 200,
          data: view(owner),
          headers: { 'set-cookie': settingCookie(sessions.begin(owner.name), origin) },
        }
      },
    },
    {
      method: 'DELETE',
      path: '/api/session',
      role: 'open',
      operationId: 'session.end',
      tag: 'session',
      summary: 'Sign a browser out',
      data: Type.Pick(SESSION, ['signedIn']),
      answer: async ({ headers: { origin } }) => ({
        status: 200,
        data: { signedIn: false },
        headers: { 'set-cookie': clearingCookie(origin) },
      }),
    },
  ]
}
