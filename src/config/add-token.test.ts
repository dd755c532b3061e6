import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../core/settings/config-error.ts'
import { addToken } from './file.ts'
import { loadConfig } from './load.ts'

const ops = { name: 'ops', role: 'operator', sha256: 'ab'.repeat(32) } as const
const root = { name: 'root', role: 'admin', sha256: 'cd'.repeat(32) } as const

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-token-'))
  file = join(folder, 'bartleby.yaml')
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const tokens = () => loadConfig({ file, env: {} }).auth.tokens
const modeOf = (path: string): number => statSync(path).mode & 0o777

describe('adding a token', () => {
  it('creates a file that only its owner may read', () => {
    addToken(file, ops)
    expect(tokens()).toEqual([ops])
    expect(modeOf(file)).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toBe(
      `auth:\n  tokens:\n    - name: ops\n      role: operator\n      sha256: ${ops.sha256}\n`,
    )
  })

  it('keeps comments, order, mode and the tokens before it', () => {
    const before = `# ours\nport: 8080 # behind the proxy\nauth:\n  # people\n  tokens:\n    - name: root # me\n      role: admin\n      sha256: ${root.sha256}\nlog:\n  level: warn\n`
    writeFileSync(file, before, { mode: 0o640 })
    addToken(file, ops)
    expect(tokens()).toEqual([root, ops])
    expect(modeOf(file)).toBe(0o640)
    const added = `    - name: ops\n      role: operator\n      sha256: ${ops.sha256}\n`
    expect(readFileSync(file, 'utf8')).toBe(before.replace('log:', `${added}log:`))
  })

  it.each(['', '# only a comment\n', 'auth:\n', 'auth: {}\n', 'auth:\n  tokens:\n', 'auth:\n  tokens: []\n'])(
    'works on %j',
    (before) => {
      writeFileSync(file, before)
      addToken(file, ops)
      addToken(file, root)
      expect(tokens()).toEqual([ops, root])
      expect(readFileSync(file, 'utf8')).toContain(before.startsWith('#') ? '# only a comment' : 'auth:')
    },
  )

  it('leaves JSON as JSON', () => {
    writeFileSync(file, '{\n  "port": 8080,\n  "auth": { "tokens": [] }\n}\n')
    addToken(file, ops)
    addToken(file, root)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ port: 8080, auth: { tokens: [ops, root] } })
    writeFileSync(file, '{}')
    addToken(file, ops)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ auth: { tokens: [ops] } })
  })

  it('writes through a symbolic link', () => {
    const link = join(folder, 'link.yaml')
    writeFileSync(file, 'port: 1\n')
    symlinkSync(file, link)
    addToken(link, ops)
    expect(tokens()).toEqual([ops])
  })

  it.each([
    ['a name that is taken', { ...root, name: 'ops' }, 'auth.tokens[1].name: is the same'],
    ['a name with a line break', { ...root, name: 'a\nb' }, 'auth.tokens[1].name'],
    [
      'a token that is no hash',
      { ...root, sha256: 's3cret' },
      'auth.tokens[1].sha256: the value (not shown)',
    ],
  ])('refuses %s and changes nothing', (_, entry, problem) => {
    addToken(file, ops)
    const before = readFileSync(file, 'utf8')
    expect(() => addToken(file, entry)).toThrow(ConfigError)
    expect(() => addToken(file, entry)).toThrow(problem)
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect(readdirSync(folder)).toEqual(['bartleby.yaml'])
  })

  it('refuses a file that is broken, or a folder that is not there', () => {
    writeFileSync(file, 'port: many\n')
    expect(() => addToken(file, ops)).toThrow("port: 'many' is not allowed")
    expect(() => addToken(join(folder, 'none', 'bartleby.yaml'), ops)).toThrow(
      'cannot be changed: no such file or directory',
    )
  })
})
