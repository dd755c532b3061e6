import { MultipleErrors, NetworkError, ProtocolError, ResponseError } from '@platformatic/kafka'
import { describe, expect, it } from 'vitest'
import { clientOptions, isTrouble, troubleOf } from './client.ts'

const CONNECTION = {
  servers: ['kafka:9092'],
  clientId: 'b',
  protocol: 'PLAINTEXT',
  tls: null,
  sasl: null,
} as const

describe('what the library says', () => {
  it('is what a broker said, when one did', () => {
    const response = new ResponseError(0, 8, { '/0': [29, null] }, { secret: 'payload' })
    const error = new MultipleErrors('produce failed 3 times.', [
      new NetworkError('Connection closed'),
      response,
    ])
    expect(troubleOf(error)).toEqual({ code: 'TOPIC_AUTHORIZATION_FAILED', message: expect.any(String) })
    expect(JSON.stringify(troubleOf(error))).not.toContain('payload')
    expect(isTrouble(error, 'TOPIC_AUTHORIZATION_FAILED')).toBe(true)
    expect(isTrouble(error, 'PLT_KFK_NETWORK')).toBe(true)
    expect(isTrouble(error, 'GROUP_AUTHORIZATION_FAILED')).toBe(false)
  })

  it('is what the system said, when no broker did', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    expect(troubleOf(new MultipleErrors('none', [new NetworkError('failed', { cause })]))).toEqual({
      code: 'ECONNREFUSED',
      message: 'connect ECONNREFUSED',
    })
  })

  it('is short, and always something', () => {
    expect(troubleOf(new ProtocolError(3)).code).toBe('UNKNOWN_TOPIC_OR_PARTITION')
    expect(troubleOf(new Error('x'.repeat(1_000))).message).toHaveLength(300)
    expect(troubleOf('text')).toEqual({ code: 'UNKNOWN', message: 'UNKNOWN' })
  })
})

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
