/**
 * Ranges of addresses that must not be connected to: by name, or as `10.0.0.0/8` and `fd00::/8`. An IPv4 address is the same in
 * its own form and within an IPv6 address.
 */
import { BlockList, isIP } from 'node:net'

/** What the names stand for. */
const NAMED: ReadonlyMap<string, readonly string[]> = new Map([
  // Connecting to the unspecified address reaches this host too.
  ['loopback', ['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']],
  // With what providers share among customers, and the outdated or local forms of IPv6 that lead to such addresses.
  [
    'private',
    [
      ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'],
      ...['fc00::/7', 'fec0::/10', '2002::/16', '64:ff9b:1::/48'],
    ],
  ],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
])

/** IPv4 addresses travel in these: translated by a gateway, or written in an outdated form. */
const CARRIERS = [
  { prefix: '64:ff9b::', bits: 96 },
  { prefix: '::', bits: 96 },
] as const

export type AddressRanges = { readonly problem: string } | { refuses(address: string): boolean }

/** Reads a list of ranges; `problem` says what is wrong with the first one that is none. */
export function addressRanges(list: readonly string[]): AddressRanges {
  const ranges = new BlockList()
  for (const entry of list) {
    for (const range of NAMED.get(entry) ?? [entry]) {
      if (!add(ranges, range)) return { problem: problemOf(entry) }
    }
  }
  return { refuses: (address) => list.length > 0 && isWithin(ranges, address) }
}

const problemOf = (entry: string): string =>
  `'${entry.slice(0, 64)}' is not one of ${[...NAMED.keys()].join(', ')}, nor a range such as 10.0.0.0/8 or fd00::/8`

const RANGE = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/

function add(ranges: BlockList, range: string): boolean {
  const [, address = '', length] = RANGE.exec(range) ?? []
  const family = isIP(address)
  const longest = family === 4 ? 32 : 128
  const bits = length === undefined ? longest : Number(length)
  if (family === 0 || bits > longest) return false
  // A subnet of the form ::ffff:10.0.0.0/104 is the IPv4 one that it stands for.
  ranges.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6')
  return true
}

function isWithin(ranges: BlockList, address: string): boolean {
  // A zone says where an address is valid, and is no part of it.
  const [plain = ''] = address.split('%')
  const family = isIP(plain)
  // What is no address is none that is known to be harmless.
  if (family === 0) return true
  if (family === 4) return ranges.check(plain, 'ipv4')
  if (ranges.check(plain, 'ipv6')) return true
  const carried = carriedBy(plain)
  return carried !== null && ranges.check(carried, 'ipv4')
}

/** The IPv4 address within an IPv6 address of one of the known forms. */
function carriedBy(address: string): string | null {
  const isCarrier = CARRIERS.some(({ prefix, bits }) => {
    const carrier = new BlockList()
    carrier.addSubnet(prefix, bits, 'ipv6')
    return carrier.check(address, 'ipv6')
  })
  if (!isCarrier) return null
  // The URL parser writes IPv6 addresses in one form, without dots.
  const host = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const [high = '', low = ''] = host.split(':').slice(-2)
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16BE(Number.parseInt(high || '0', 16), 0)
  bytes.writeUInt16BE(Number.parseInt(low || '0', 16), 2)
  return bytes.join('.')
}
