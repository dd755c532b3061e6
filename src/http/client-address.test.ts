import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { clientAddresses } from './client-address.ts'

const addressOf = (trusted: readonly string[], remoteAddress: string, forwarded?: string): string => {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  // Only what the address is found by.
  return clientAddresses(trusted).of({ headers, socket: { remoteAddress } } as unknown as IncomingMessage)
}

describe('the address of a client', () => {
  it('is that of the connection, whatever it claims', () => {
    expect(addressOf([], '127.0.0.1', '198.51.100.7')).toBe('127.0.0.1')
    expect(addressOf(['private'], '203.0.113.9', '198.51.100.7')).toBe('203.0.113.9')
    expect(addressOf([], '::ffff:127.0.0.1')).toBe('127.0.0.1')
  })

  it('is the last one that no trusted proxy has', () => {
    const trusted = ['loopback', '10.0.0.0/8']
    expect(addressOf(trusted, '127.0.0.1', '1.2.3.4, 198.51.100.7, 10.0.0.5')).toBe('198.51.100.7')
    expect(addressOf(trusted, '::1', '198.51.100.7:4711')).toBe('198.51.100.7')
    expect(addressOf(trusted, '127.0.0.1', '10.0.0.6')).toBe('10.0.0.6')
    expect(addressOf(trusted, '127.0.0.1')).toBe('127.0.0.1')
    expect(addressOf(trusted, '127.0.0.1', 'unknown, nonsense')).toBe('127.0.0.1')
    expect(addressOf(trusted, '127.0.0.1', '198.51.100.7, nonsense, 10.0.0.5')).toBe('10.0.0.5')
  })

  it('is the network of a machine with IPv6', () => {
    expect(addressOf([], '2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
    expect(addressOf([], '2001:db8::9')).toBe(addressOf([], '2001:0db8:0::abcd'))
    expect(addressOf(['loopback'], '::1', '[2001:db8:1:2::7]:4711')).toBe('2001:db8:1:2::/64')
    expect(addressOf([], 'fe80::1%eth0')).toBe('fe80:0:0:0::/64')
  })
})
