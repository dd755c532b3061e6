import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { TokenEntry } from '../../api/auth.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { COOKIE_NAME, SESSION_SECONDS, Sessions } from './sessions.ts'

const token = (name: string, role: TokenEntry['role'], text = name): TokenEntry => ({
  name,
  role,
  sha256: createHash('sha256').update(text).digest('hex'),
})
const OPS = token('ops', 'operator')
const BOSS = token('boss', 'admin')
const SECRET = Buffer.alloc(32, 1)

const clock = new TestClock()
clock.freeze(instant(1_800_000_000_000_000n))

const server = (tokens: readonly TokenEntry[] = [OPS, BOSS], secret: Uint8Array = SECRET) =>
  new Sessions({ tokens, secret, clock })

const header = (value: string) => `theme=dark; ${COOKIE_NAME}=${value}; other=1`
const encoded = (content: unknown) => Buffer.from(JSON.stringify(content)).toString('base64url')

describe('a session', () => {
  it('names its caller on every server of the store, with the role that the token has now', () => {
    const value = server().begin('ops')
    expect(server().find(header(value))?.caller).toEqual({ name: 'ops', role: 'operator' })
    expect(server([token('ops', 'viewer')]).find(header(value))?.caller.role).toBe('viewer')
  })

  it('is over after twelve hours, and not a moment before', () => {
    const value = server().begin('ops')
    clock.advance(BigInt(SESSION_SECONDS) * 1_000_000n - 1n)
    expect(server().find(header(value))).not.toBeNull()
    clock.advance(1n)
    expect(server().find(header(value))).toBeNull()
  })

  it('ends with its token: taken away, or replaced by another of the same name', () => {
    const value = server().begin('ops')
    expect(server([BOSS]).find(header(value))).toBeNull()
    expect(server([token('ops', 'operator', 'a new one')]).find(header(value))).toBeNull()
  })

  it('cannot be made with the configuration alone, nor for another store', () => {
    const value = server([OPS], Buffer.alloc(32, 2)).begin('ops')
    expect(server().find(header(value))).toBeNull()
  })

  it('cannot be changed into that of somebody else, nor into a longer one', () => {
    const [payload = '', seal = ''] = server().begin('ops').split('.')
    const content = JSON.parse(Buffer.from(payload, 'base64url').toString())
    for (const changed of [
      { ...content, name: 'boss' },
      { ...content, deadline: `${content.deadline}0` },
    ]) {
      expect(server().find(header(`${encoded(changed)}.${seal}`))).toBeNull()
    }
    const [bossPayload] = server().begin('boss').split('.')
    expect(server().find(header(`${bossPayload}.${seal}`))).toBeNull()
  })

  it.each([
    ['nothing', ''],
    ['no seal', encoded({ name: 'ops', deadline: '9' })],
    ['an empty seal', `${encoded({ name: 'ops', deadline: '9999999999999999' })}.`],
    ['three parts', `${server().begin('ops')}.x`],
    ['a seal cut short', server().begin('ops').slice(0, -1)],
    ['no JSON', `${Buffer.from('ops').toString('base64url')}.x`],
    ['null', `${encoded(null)}.x`],
    ['fields of other kinds', `${encoded({ name: 1, deadline: true })}.x`],
    ['a name of nobody', `${encoded({ name: '__proto__', deadline: '9999999999999999' })}.x`],
    ['a megabyte', 'x'.repeat(1_000_000)],
  ])('is none when the cookie holds %s', (_, value) => {
    expect(server().find(header(value))).toBeNull()
  })

  it('is found beside another cookie of its name, which sites below the same domain can add', () => {
    const value = server().begin('ops')
    expect(server().find(`${header('x')}; ${header(value)}`)?.caller.name).toBe('ops')
    expect(server().find(`${header('x')}; ${header('y')}`)).toBeNull()
  })

  it('is none without its cookie', () => {
    expect(server().find(undefined)).toBeNull()
    expect(server().find(`x${COOKIE_NAME}=${server().begin('ops')}; =; ;;`)).toBeNull()
  })
})
