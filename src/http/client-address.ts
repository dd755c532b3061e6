/** The address of a client: that of its connection, or what trusted proxies saw. Further left in `X-Forwarded-For` all may be made up. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { addressRanges } from '../core/address-ranges.ts'

export interface ClientAddresses {
  /** A whole IPv6 network counts as one: a single machine has all of its addresses. */
  of(request: IncomingMessage): string
  /** null for a proxy's connection, which many share. */
  ofConnection(remoteAddress: string | undefined): string | null
}

/** `trusted` was checked when the configuration was read. */
export function clientAddresses(trusted: readonly string[]): ClientAddresses {
  const ranges = addressRanges(trusted)
  if ('problem' in ranges) throw new TypeError(`http.trustedProxies: ${ranges.problem}`)
  const isProxy = (address: string): boolean => trusted.length > 0 && ranges.refuses(address)
  return {
    of({ headers, socket }) {
      let address = plain(socket.remoteAddress)
      if (!isProxy(address)) return known(address)
      const hops = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',').reverse()
      for (const hop of hops) {
        const seen = plain(hop.trim())
        if (isIP(seen) === 0) break
        address = seen
        if (!isProxy(seen)) break
      }
      return known(address)
    },
    ofConnection(remoteAddress) {
      const address = plain(remoteAddress)
      return isProxy(address) ? null : known(address)
    },
  }
}

/** Without a port, and IPv4 in its own form. */
function plain(address = ''): string {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1] ?? address
  const mapped = bare.replace(/^::ffff:(?=\d+\.)/i, '')
  return mapped.includes('.') && mapped.includes(':') ? (mapped.split(':', 1)[0] ?? '') : mapped
}

/** Of IPv6 the first 64 bits. */
function known(address: string): string {
  if (isIP(address) !== 6) return address
  // The URL parser writes addresses in one form.
  const [plainAddress = ''] = address.split('%')
  const text = new URL(`http://[${plainAddress}]/`).hostname.slice(1, -1)
  const [head = '', tail = ''] = text.split('::')
  const [before, after] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const gap = text.includes('::') ? Array.from({ length: 8 - before.length - after.length }, () => '0') : []
  return `${[...before, ...gap, ...after].slice(0, 4).join(':')}::/64`
}
