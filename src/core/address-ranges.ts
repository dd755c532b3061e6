/** Ranges of addresses that must not be connected to, by name or as `10.0.0.0/8`. An IPv4 address is the same within an IPv6 address. */
import { BlockList, isIP } from 'node:net'

const NAMED: ReadonlyMap<string, readonly string[]> = new Map([
  // The unspecified address reaches this host too.
  ['loopback', ['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']],
  // With addresses that providers share among customers, and IPv6 forms that lead to such addresses.
  [
    'private',
    [
      ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'],
      ...['fc00::/7', 'fec0::/10', '2002::/16', '64:ff9b:1::/48'],
    ],
  ],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
  // Clouds hand out the machine's credentials there: AWS, Google, Oracle, Alibaba, Azure.
  [
    'metadata',
    [
      ...['169.254.169.254', '169.254.170.2', '169.254.170.23', 'fd00:ec2::254', 'fd00:ec2::23'],
      ...['fd20:ce::254', 'fd00:c1::a9fe:a9fe', '192.0.0.192', '100.100.100.200', '168.63.129.16'],
    ],
  ],
])

/** Nobody delivers there on purpose. */
export const REFUSED_BY_DEFAULT: readonly string[] = ['link-local', 'metadata']

/** IPv6 forms that carry IPv4 addresses in the given bytes: translated, tunnelled or outdated. */
const CARRIERS = [
  { prefix: '64:ff9b::', bits: 96, bytes: [12, 13, 14, 15] },
  { prefix: '64:ff9b:1::', bits: 48, bytes: [12, 13, 14, 15] },
  { prefix: '64:ff9b:1::', bits: 48, bytes: [6, 7, 9, 10] },
  { prefix: '::ffff:0:0:0', bits: 96, bytes: [12, 13, 14, 15] },
  { prefix: '::', bits: 96, bytes: [12, 13, 14, 15] },
  { prefix: '2002::', bits: 16, bytes: [2, 3, 4, 5] },
].map(({ prefix, bits, bytes }) => {
  const within = new BlockList()
  within.addSubnet(prefix, bits, 'ipv6')
  return { within, bytes }
})

type AddressRanges = { readonly problem: string } | { refuses(address: string): boolean }

/** `problem` describes the first entry that is no range. */
export function addressRanges(list: readonly string[]): AddressRanges {
  const ranges = new BlockList()
  for (const entry of list) {
    for (const range of NAMED.get(entry) ?? [entry]) {
      if (!add(ranges, range)) return { problem: problemOf(entry) }
    }
  }
  return { refuses: (address) => list.length > 0 && isWithin(ranges, address) }
}

/** Completes the sentence "allowed: …". */
export const ADDRESS_RANGE_FORM = `${[...NAMED.keys()].map((name) => `'${name}'`).join(', ')} or a range such as '10.0.0.0/8'`

const problemOf = (entry: string): string =>
  `'${entry.slice(0, 64)}' is not one of ${[...NAMED.keys()].join(', ')}, nor a range such as 10.0.0.0/8 or fd00::/8`

const RANGE = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/

function add(ranges: BlockList, range: string): boolean {
  const [, address = '', length] = RANGE.exec(range) ?? []
  const family = isIP(address)
  const longest = family === 4 ? 32 : 128
  const bits = length === undefined ? longest : Number(length)
  if (family === 0 || bits > longest) return false
  // ::ffff:10.0.0.0/104 is the IPv4 range it stands for.
  ranges.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6')
  return true
}

function isWithin(ranges: BlockList, address: string): boolean {
  // A zone is no part of the address.
  const [plain = ''] = address.split('%')
  const family = isIP(plain)
  // Anything that is no address may be harmful.
  if (family === 0) return true
  if (family === 4) return ranges.check(plain, 'ipv4')
  if (ranges.check(plain, 'ipv6')) return true
  return carriedBy(plain).some((carried) => ranges.check(carried, 'ipv4'))
}

function carriedBy(address: string): readonly string[] {
  const all = bytesOf(address)
  return CARRIERS.filter(({ within }) => within.check(address, 'ipv6')).map(({ bytes }) =>
    bytes.map((at) => all[at]).join('.'),
  )
}

function bytesOf(address: string): Uint8Array {
  // The URL parser writes IPv6 addresses in one form, without dots.
  const text = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const [head = [], tail = []] = text
    .split('::')
    .map((half) => (half === '' ? [] : half.split(':').map((group) => Number.parseInt(group, 16))))
  const groups = [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail]
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]))
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Only this machine can reach it. Names other than localhost may resolve to anything. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6')
}
