/**
 * What deliveries never reach unless somebody says so. Names are looked up by a stand-in, and connections are "opened" by one that only
 * writes down where to: nothing is ever sent.
 */
import { isIP } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { message } from '../../test/world/outbox-message.ts'
import { closeAfterEach } from '../../test/world/receiver.ts'
import { post } from '../../test/world/webhooks/attempts.ts'
import { httpTransportOver } from '../sources/outbox/transports/http.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from '../sources/webhooks/settings.ts'
import type { Network } from './connector.ts'

const names = new Map<string, readonly string[]>()
/** The addresses that a connection was about to be opened to. */
const dialled: string[] = []

/** As the system does: an address as it is, a name by looking it up; and then no further. */
const standIn: Network = {
  lookup: async (host) => (names.get(host) ?? []).map((address) => ({ address, family: isIP(address) })),
  opener:
    async ({ lookup }) =>
    ({ hostname }, done) => {
      const dial = (...addresses: readonly string[]): void => {
        dialled.push(...addresses)
        done(new Error('a stand-in opens nothing'), null)
      }
      if (isIP(hostname) !== 0) dial(hostname)
      else
        lookup(hostname, { all: true }, (error, found) => {
          if (error !== null) done(error, null)
          else dial(...[found].flat().map((each) => (typeof each === 'string' ? each : each.address)))
        })
    },
}

const NEVER = new AbortController().signal

closeAfterEach()
beforeEach(() => {
  dialled.length = 0
  names.clear()
})

type Given = { readonly refusedAddresses?: readonly string[] }
const transports: { close?(): Promise<void> }[] = []
afterEach(async () => {
  for (const transport of transports.splice(0)) await transport.close?.()
})

/** What comes of a delivery to this address, in words. */
const ways = {
  'a webhook': async (url: string, given: Given) => {
    const refusedAddresses = given.refusedAddresses ?? DEFAULT_WEBHOOK_SETTINGS.delivery.refusedAddresses
    return JSON.stringify(await post(standIn).send({ url, delivery: { refusedAddresses } }))
  },
  'an outbox': async (url: string, given: Given) => {
    const transport = httpTransportOver(standIn, { url, ...given })
    transports.push(transport)
    return transport.deliver(message(), NEVER).then(() => 'sent', String)
  },
}

const METADATA = [
  '169.254.169.254',
  '169.254.1.1',
  'fe80::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  '100.100.100.200',
  '::ffff:169.254.169.254',
  '::169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
]
const ELSEWHERE = ['127.0.0.1', '::1', '10.1.2.3', '192.168.0.1', '100.100.100.201', 'fd12::1', '203.0.113.9']

describe.each(Object.entries(ways))('%s', (_, deliver) => {
  it.each(METADATA)('never reaches %s by default, by its address or by a name', async (address) => {
    names.set('innocent.example', [address])
    const host = isIP(address) === 6 ? `[${address}]` : address
    for (const url of [`http://${host}/`, 'http://innocent.example/'])
      expect(await deliver(url, {})).toContain('refused')
    expect(dialled).toEqual([])
  })

  it('takes what is left where a name leads to both', async () => {
    names.set('both.example', ['169.254.169.254', '203.0.113.9'])
    await deliver('http://both.example/', {})
    expect(dialled).toEqual(['203.0.113.9'])
  })

  it.each(ELSEWHERE)('reaches %s as before', async (address) => {
    names.set('innocent.example', [address])
    expect(await deliver('http://innocent.example/', {})).not.toContain('refused')
    expect(dialled).toEqual([address])
  })

  it('takes a list that is given as it is written, also an empty one', async () => {
    names.set('innocent.example', ['169.254.169.254'])
    names.set('inner.example', ['10.1.2.3'])
    await deliver('http://innocent.example/', { refusedAddresses: [] })
    await deliver('http://innocent.example/', { refusedAddresses: ['private'] })
    expect(await deliver('http://inner.example/', { refusedAddresses: ['private'] })).toContain('refused')
    expect(dialled).toEqual(['169.254.169.254', '169.254.169.254'])
  })
})
