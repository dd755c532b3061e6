/**
 * The names under which a server answers. Another site can point its own name at this machine (DNS rebinding), and browsers then take the
 * server for a part of that site; only `Host` gives such a request away. So a server without tokens answers under names that cannot be
 * taken over: the machine's own, the address listened on, and allowed ones. Tokens protect by themselves, and proxies send any host; there
 * the rule holds only with a list.
 */
import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { pathOf } from '../api/facade.ts'
import { shorten } from '../api/query.ts'
import { isLoopback } from '../core/address-ranges.ts'
import { failure } from '../core/errors.ts'
import type { Facades } from './facades.ts'

interface HostRules {
  /** The address listened on. */
  readonly listen: string
  /** Names without ports; `*.example.com` is every name below it. undefined: any host, where tokens are asked for. */
  readonly allowed?: readonly string[] | undefined
  readonly hasTokens: boolean
  readonly facades: Facades
}

/** The first hook of all: nothing is done for other hosts. */
export function hostCheck(rules: HostRules) {
  const { facades } = rules
  const isOurs = rules.hasTokens && rules.allowed === undefined ? () => true : ownership(rules)
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { raw } = request
    const { host } = raw.headers
    if (hasTwoHosts(raw.rawHeaders)) facades.sendError(request, reply, failure('host_twice'))
    else if (isHealth(pathOf(request.url)) || isOurs(host, raw.socket.localAddress)) done()
    else facades.sendError(request, reply, failure('host_unknown', { host: shorten(host ?? '', 100) }))
  }
}

/** Probes come by any name, and learn nothing worth hiding. */
export const isHealth = (path: string): boolean => path === '/health' || path.startsWith('/health/')

/** Node keeps the first of several; a proxy may have kept another. */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count > 1
}

const HOST = /^(\[[\da-f:.]+\]|[^\s:@/?#[\]]+)(?::\d{1,5})?$/i

/** The name or address in a `Host`, in one form. */
function nameIn(host: string): string | null {
  const [, name] = HOST.exec(host) ?? []
  return name === undefined ? null : plain(name)
}

const plain = (name: string): string => name.toLowerCase().replace(/^\[|\]$|\.$/g, '')

function ownership({ listen, allowed = [] }: HostRules) {
  const names = new Set([listen, ...allowed].map(plain))
  const endings = allowed.filter((name) => name.startsWith('*.')).map((name) => plain(name.slice(1)))
  return (host: string | undefined, localAddress: string | undefined): boolean => {
    // Only HTTP/1.0 has none, which no browser speaks.
    if (host === undefined) return true
    const name = nameIn(host)
    if (name === null) return false
    if (names.has(name) || isLoopback(name) || name.endsWith('.localhost')) return true
    // An address cannot be rebound: the one that the connection came in at is ours.
    if (isIP(name) !== 0) return name === localAddress?.replace(/^::ffff:/, '')
    return endings.some((ending) => name.endsWith(ending) && name.length > ending.length)
  }
}
