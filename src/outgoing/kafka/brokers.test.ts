import { describe, expect, it } from 'vitest'
import { clientOptions } from './brokers.ts'

const CONNECTION = {
  servers: ['kafka:9092'],
  clientId: 'b',
  protocol: 'PLAINTEXT',
  tls: null,
  sasl: null,
} as const

describe('the options of a connection', () => {
  it('are no others than what is set', () => {
    expect(clientOptions(CONNECTION)).toMatchObject({ clientId: 'b', bootstrapBrokers: ['kafka:9092'] })
    expect(clientOptions(CONNECTION)).not.toHaveProperty('tls')
    expect(clientOptions(CONNECTION)).not.toHaveProperty('sasl')
  })

  it('name the server in TLS, unless servers are addresses', () => {
    const tls = { ca: 'ca', cert: null, key: null, passphrase: null, checkHostname: true }
    const secured = { ...CONNECTION, protocol: 'SSL', tls } as const
    expect(clientOptions(secured)).toMatchObject({ tls: { ca: 'ca' }, tlsServerName: true })
    expect(clientOptions(secured).tls).toEqual({ ca: 'ca' })
    expect(clientOptions({ ...secured, servers: ['10.0.0.1:9093', '[::1]:9093'] }).tlsServerName).toBe(false)
  })

  it('check the name in the certificate, unless told otherwise', () => {
    const tls = { ca: null, cert: null, key: null, passphrase: null, checkHostname: false }
    const { checkServerIdentity } = clientOptions({ ...CONNECTION, protocol: 'SSL', tls }).tls ?? {}
    expect(checkServerIdentity?.('other', {} as never)).toBeUndefined()
    expect(
      clientOptions({ ...CONNECTION, protocol: 'SSL', tls: { ...tls, checkHostname: true } }).tls,
    ).toEqual({})
  })

  it('hold the credentials', () => {
    const sasl = { mechanism: 'OAUTHBEARER', username: null, password: null, token: 'secret' } as const
    expect(clientOptions({ ...CONNECTION, protocol: 'SASL_PLAINTEXT', sasl }).sasl).toEqual({
      mechanism: 'OAUTHBEARER',
      token: 'secret',
    })
  })
})
