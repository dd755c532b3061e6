import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { closeServers, dial, received, scriptedServer } from '../../test/world/scripted-server.ts'

const tokens = [{ name: 'look', role: 'viewer', sha256: 'ab'.repeat(32) }] as const
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const SCRIPT = `document.title = '${'a console '.repeat(20)}'`

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-console-'))
  mkdirSync(join(folder, 'assets'))
  writeFileSync(
    join(folder, 'index.html'),
    '<!doctype html><meta name="style-nonce" content="__NONCE__"><style nonce="__NONCE__"></style>',
  )
  writeFileSync(join(folder, '.sources'), 'digest')
  writeFileSync(join(folder, 'assets/index-1a2b.js'), SCRIPT)
  writeFileSync(join(folder, 'assets/index-1a2b.js.br'), brotliCompressSync(SCRIPT))
  writeFileSync(join(folder, 'assets/index-1a2b.js.gz'), gzipSync(SCRIPT))
  writeFileSync(join(folder, 'assets/icon.svg'), '<svg/>')
  writeFileSync(join(folder, 'assets/.hidden'), 'x')
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))
afterEach(closeServers)

const start = () => scriptedServer({ tokens, consoleFolder: folder })

describe('the page of the console', () => {
  it.each(['/', '/letters', '/letters/hmac/a%2Fb-1', '/sources/kafka', '/settings?tab=tokens'])(
    'is at %s, for everybody',
    async (url) => {
      const { app } = await start()
      const page = await app.inject({ url, headers: BROWSER })
      expect(page.statusCode).toBe(200)
      expect(page.body).toContain('style-nonce')
      expect(page.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
      })
    },
  )

  it('allows nothing but files of its own, and styles with the number of this very answer', async () => {
    const { app } = await start()
    const [first, second] = [await app.inject('/'), await app.inject('/')]
    const [, nonce = ''] = /name="style-nonce" content="([\w+/=]{24})"/.exec(first.body) ?? []
    expect(first.headers['content-security-policy']).toBe(
      `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; font-src 'self'; ` +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    expect(first.body).not.toContain('__NONCE__')
    expect(first.body.split(nonce)).toHaveLength(3)
    expect(second.body).not.toContain(nonce)
  })

  it('is never in the place of an answer of an API', async () => {
    const { app } = await start()
    const status = async (url: string) => (await app.inject({ url, headers: BROWSER })).statusCode
    expect(await status('/api/nope')).toBe(401)
    expect(await status('/v1/x')).toBe(400)
    expect(await status('/kafka/x')).toBe(404)
    expect(await status('/channels')).toBe(401)
    expect(await status('/channel/x/broadcast')).toBe(401)
    expect((await app.inject('/letters')).statusCode).toBe(401)
  })

  it('leaves a path that the webhook API has with other methods, or without a last slash, to it', async () => {
    const { app } = await scriptedServer({ consoleFolder: folder })
    const status = async (url: string) => (await app.inject({ url, headers: BROWSER })).statusCode
    expect([await status('/channel/x/broadcast'), await status('/channels/')]).toEqual([405, 301])
  })

  it('is a plain one that says how to build it, while it is not built', async () => {
    const { app } = await scriptedServer({ tokens })
    const page = await app.inject({ url: '/letters', headers: BROWSER })
    expect(page.statusCode).toBe(200)
    expect(page.body).toContain('npm run build:console')
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect((await app.inject('/assets/index-1a2b.js')).statusCode).toBe(404)
  })
})

describe('the files of the console', () => {
  it.each([
    ['br, gzip', 'br'],
    ['gzip', 'gzip'],
    ['identity', undefined],
  ])('are sent to a browser that takes %s as %s, to be kept for good', async (accepted, encoding) => {
    const { app } = await start()
    const file = await app.inject({ url: '/assets/index-1a2b.js', headers: { 'accept-encoding': accepted } })
    expect(file.statusCode).toBe(200)
    expect(file.headers['content-encoding']).toBe(encoding)
    expect(file.headers).toMatchObject({
      'content-type': 'application/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      vary: 'accept-encoding',
    })
  })

  it('are sent as they are when there is no compressed one', async () => {
    const { app } = await start()
    const file = await app.inject({ url: '/assets/icon.svg', headers: { 'accept-encoding': 'br, gzip' } })
    expect([file.body, file.headers['content-encoding']]).toEqual(['<svg/>', undefined])
  })

  it.each([
    '/assets/index-9z.js',
    '/assets/',
    '/assets/.hidden',
    '/assets/..%2f.sources',
    '/assets//index-1a2b.js',
    '/assets/%E0%A4%A',
  ])('are not at %s, nor is the page', async (url) => {
    const { app, logged } = await start()
    const file = await app.inject({ url, headers: BROWSER })
    expect([file.statusCode, file.body]).toEqual([404, '404 page not found\n'])
    expect(logged.filter((line) => line.includes('"level":50'))).toEqual([])
  })

  it.each(['/assets/../index.html', '/assets/%2e%2e/.sources', '/assets/./index-1a2b.js'])(
    'are not at %s as it is sent by hand',
    async (path) => {
      const socket = await dial(await start())
      const answer = received(socket)
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n`,
      )
      expect(await answer).toMatch(/^HTTP\/1\.1 404 /)
    },
  )
})
