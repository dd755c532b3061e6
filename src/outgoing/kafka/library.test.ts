import { readFileSync } from 'node:fs'
import { MultipleErrors, NetworkError, ProtocolError, ResponseError } from '@platformatic/kafka'
import { describe, expect, it } from 'vitest'
import { isTrouble, LIBRARY_VERSION, troubleOf } from './library.ts'

describe('the library', () => {
  it('is an optional package, in the release that the sources name', () => {
    const manifest: unknown = JSON.parse(
      readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
    )
    expect(manifest).toMatchObject({
      peerDependencies: { '@platformatic/kafka': LIBRARY_VERSION },
      peerDependenciesMeta: { '@platformatic/kafka': { optional: true } },
      devDependencies: { '@platformatic/kafka': LIBRARY_VERSION },
    })
    expect(manifest).not.toHaveProperty(['dependencies', '@platformatic/kafka'])
  })
})

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
