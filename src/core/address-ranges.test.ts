import { describe, expect, it } from 'vitest'
import { addressRanges } from './address-ranges.ts'

function refused(list: readonly string[], addresses: readonly string[]): string[] {
  const ranges = addressRanges(list)
  if ('problem' in ranges) throw new Error(ranges.problem)
  return addresses.filter((address) => ranges.refuses(address))
}

describe('ranges of refused addresses', () => {
  const outside = [
    '8.8.8.8',
    '2001:db8::1',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '172.32.0.1',
    '100.128.0.1',
  ]

  it('refuse nothing when there are none', () => {
    expect(refused([], ['127.0.0.1', '::1', ...outside])).toEqual([])
  })

  it.each([
    [
      'loopback',
      [
        '127.0.0.1',
        '127.255.0.9',
        '0.0.0.0',
        '::1',
        '::',
        '::ffff:127.0.0.1',
        '::ffff:7f00:1',
        '64:ff9b::7f00:1',
      ],
    ],
    [
      'private',
      [
        '10.1.2.3',
        '172.31.255.255',
        '192.168.0.1',
        '100.64.0.1',
        'fd12::1',
        '::ffff:10.0.0.1',
        '::10.0.0.1',
        'fec0::1',
        '2002:a00:1::',
      ],
    ],
    [
      'link-local',
      ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', '::ffff:a9fe:a9fe', 'febf::1', '2002:a9fe:1::1'],
    ],
    [
      'metadata',
      [
        '169.254.169.254',
        '100.100.100.200',
        'fd00:ec2::254',
        'fd20:ce::254',
        '::ffff:0:6464:64c8',
        '64:ff9b::6464:64c8',
        '64:ff9b:1:6464:64:c800::',
        '64:ff9b:1::6464:64c8',
      ],
    ],
  ])('know what is %s', (name, addresses) => {
    expect(refused([name], [...addresses, ...outside])).toEqual(addresses)
  })

  it('are given as networks of both kinds, and as single addresses', () => {
    const list = ['203.0.113.0/24', '2001:db8:1::/48', '198.51.100.7', '2001:db8:2::9']
    const inside = [
      '203.0.113.255',
      '::ffff:203.0.113.1',
      '2001:db8:1:ffff::1',
      '198.51.100.7',
      '2001:db8:2::9',
    ]
    expect(refused(list, [...inside, '203.0.114.0', '198.51.100.8', '2001:db8:2::a', ...outside])).toEqual(
      inside,
    )
  })

  it('refuse what is no address', () => {
    expect(refused(['loopback'], ['nonsense', ''])).toEqual(['nonsense', ''])
  })

  it.each(['', 'localhost', '10.0.0.0/33', '::1/129', '10.0.0/8', '10.0.0.0/8/8', '10.0.0.0/', 'toString'])(
    "say that '%s' is none",
    (entry) => {
      expect(addressRanges(['private', entry])).toEqual({ problem: expect.stringContaining(`'${entry}'`) })
    },
  )
})
