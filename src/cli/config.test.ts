import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bartleby } from '../../test/world/terminal-double.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-config-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (text: string): string => {
  const file = join(folder, 'bartleby.yaml')
  writeFileSync(file, text)
  return file
}

describe('bartleby config check', () => {
  it('says that a file is good, also an empty one', async () => {
    for (const text of ['port: 9000\n', '', '# nothing\n']) {
      const file = write(text)
      expect(await bartleby(['config', 'check', file])).toMatchObject({
        code: 0,
        out: `${file} is good`,
        err: '',
      })
    }
  })

  it('tells all errors at once and ends with 1', async () => {
    const file = write('hots: a\nport: eighty\nlog: { level: loud }\n')
    const { code, out, err } = await bartleby(['config', 'check', file], { env: { BARTLEBY_PORT: 'x' } })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err.split('\n').map((line) => line.replace(`${file}: `, ''))).toEqual([
      'bartleby: invalid configuration, 4 problems:',
      "  - hots: unknown key; did you mean 'host'?",
      "  - port: 'eighty' is not allowed; allowed: a whole number from 0 to 65535",
      expect.stringContaining("  - log.level: 'loud' is not allowed"),
      "  - environment BARTLEBY_PORT: port: 'x' is not allowed; allowed: a whole number from 0 to 65535",
    ])
  })

  it('tells what keeps a server from starting though every key is right', async () => {
    const file = write(
      'host: 0.0.0.0\nkafka: { servers: [a:1], security_protocol: SSL, ssl_cafile: none.pem }\n',
    )
    const { code, err } = await bartleby(['config', 'check', '--config', file])
    expect(code).toBe(1)
    expect(err).toContain("host: '0.0.0.0' can be reached from other machines")
    expect(err).toContain(`kafka.ssl_cafile: '${join(folder, 'none.pem')}' cannot be read`)
  })

  it.each([
    ['a: b: c', 'line 1, column 4'],
    ['- 1', 'must be a mapping, not a list'],
    ['just text', 'must be a mapping, not a string'],
  ])('refuses %j', async (text, told) => {
    const { code, err } = await bartleby(['config', 'check', write(text)])
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(told) })
  })

  it('refuses a file that is not there, and a directory', async () => {
    const missing = await bartleby(['config', 'check', join(folder, 'none.yaml')])
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('no such file or directory') })
    const directory = await bartleby(['config', 'check', folder])
    expect(directory).toMatchObject({ code: 1, err: expect.stringContaining('it is a directory') })
  })

  it('looks at the environment alone where no file is named', async () => {
    expect(await bartleby(['config', 'check'])).toMatchObject({ code: 0 })
    expect(await bartleby(['config', 'check'], { env: { BARTLEBY_TEST_API: 'yes' } })).toMatchObject({
      code: 1,
    })
  })

  it('prints JSON', async () => {
    const file = write('port: 70000\n')
    const { code, out } = await bartleby(['config', 'check', file, '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(out)).toEqual({
      file,
      problems: [expect.stringContaining('port: 70000 is not allowed')],
    })
  })
})

describe('bartleby config show', () => {
  const rowsOf = async (args: readonly string[], env: Record<string, string> = {}) => {
    const { code, out } = await bartleby(['config', 'show', '--json', ...args], { env })
    expect(code).toBe(0)
    return JSON.parse(out)
  }

  it('says where each value came from', async () => {
    const file = write('http: { port: 9000 }\nstore: sqlite:a.db\nengineTablesConfig: { retentionDays: 7 }\n')
    const env = { BARTLEBY_LOG_LEVEL: 'debug', BARTLEBY_CONFIG: file, BARTLEBY_HOST: '' }
    expect(await rowsOf(['--given', '--store', 'sqlite:b.db'], env)).toEqual([
      { key: 'port', value: 9000, otherwise: null, from: 'file', name: file },
      { key: 'store', value: 'sqlite:b.db', otherwise: null, from: 'flag', name: '--store' },
      { key: 'log.level', value: 'debug', otherwise: null, from: 'environment', name: 'BARTLEBY_LOG_LEVEL' },
      { key: 'engines.tables.retentionDays', value: 7, otherwise: null, from: 'file', name: file },
    ])
  })

  it('has all keys, those of a section where one is named, and what holds without a value', async () => {
    expect((await rowsOf([])).length).toBeGreaterThan(100)
    expect(await rowsOf(['log'])).toEqual([
      { key: 'log.level', value: 'info', otherwise: null, from: 'default', name: null },
      { key: 'log.file', value: null, otherwise: 'standard error', from: 'default', name: null },
    ])
    expect(await bartleby(['config', 'show', 'nope'])).toMatchObject({ code: 3 })
    expect((await bartleby(['config', 'show', 'log'])).out).toContain('log.file   (standard error)  default')
  })

  it('shows no secret', async () => {
    const file = write(`
store: postgres://app:hunter2@db/office
auth: { tokens: [{ name: a, role: admin, sha256: ${'ab'.repeat(32)} }] }
webhooks: { gatewayAuth: { secret: aHVudGVyMg== }, seed: { channels: [{ id: c, token: hunter2 }] } }
outbox:
  - name: a
    url: postgres://app:hunter2@db/shop
    transport: { type: http, url: https://a.example, secret: hunter2, headers: { authorization: hunter2 } }
kafka: { security_protocol: SASL_SSL, sasl_mechanism: PLAIN, sasl_username: u, sasl_password: hunter2, servers: [a:1] }
`)
    for (const args of [[], ['--json']]) {
      const { code, out } = await bartleby(['config', 'show', '--config', file, ...args])
      expect(code).toBe(0)
      expect(out).toContain('postgres://app:***@db/office')
      expect(out).not.toMatch(/hunter2|aHVudGVyMg|abab/)
    }
  })

  it('refuses what a server would', async () => {
    expect(await bartleby(['config', 'show', '--config', write('port: x')])).toMatchObject({ code: 2 })
  })
})
