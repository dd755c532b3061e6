import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../core/settings/config-error.ts'
import { withDefaults } from '../core/settings/read.ts'
import { KafkaSchema } from '../sources/kafka/settings/schema.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from '../sources/webhooks/settings.ts'
import { type ConfigSources, configFileOf } from './layers.ts'
import { loadConfig } from './load.ts'

const HASH = 'ab'.repeat(32)

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-config-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const write = (text: string, name = 'bartleby.yaml'): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** The problems, with the file's path cut down to its name. */
const problemsOf = (sources: Partial<ConfigSources>): string[] => {
  try {
    loadConfig({ env: {}, ...sources })
  } catch (error) {
    if (error instanceof ConfigError)
      return error.problems.map((problem) => problem.replace(`${folder}/`, ''))
    throw error
  }
  return []
}

describe('a configuration', () => {
  it('has defaults for everything', () => {
    expect(loadConfig({ env: {} })).toEqual({
      host: '127.0.0.1',
      port: 1853,
      store: 'sqlite:./data/bartleby.db',
      unsupportedStore: false,
      http: {
        bodyTimeoutSeconds: 30,
        connectionsWithoutToken: 200,
        wrongTokensPerMinute: 100,
        trustedProxies: [],
        readTimeoutSeconds: 240,
        writeTimeoutSeconds: 240,
        maxBodyBytes: 16_777_216,
      },
      auth: { tokens: [] },
      kafka: withDefaults(KafkaSchema, {}),
      metrics: { open: false },
      console: { environment: 'local', colour: 'gray' },
      queues: { maxProduceBytes: 5_000_000, maxPendingRequests: 100, dedupeWindow: '5m' },
      engines: {
        definitions: {},
        tables: {
          ...{ dlqTableName: 'engineDlq', historyTableName: 'engineHistory', retentionDays: 90 },
          ...{
            queues: { encoding: 'as-found' },
            poison: [],
            mark: false,
            retention: 'others',
            pollSeconds: 2,
          },
        },
      },
      outbox: [],
      webhooks: DEFAULT_WEBHOOK_SETTINGS,
      postgres: { poolSize: 8 },
      log: { level: 'info' },
      testApi: false,
    })
  })

  it('takes each key from the strongest source that gives it', () => {
    const file = write('host: file\nport: 1\nstore: sqlite:file.db\nqueues: { maxPendingRequests: 7 }\n')
    const env = { BARTLEBY_CONFIG: file, BARTLEBY_PORT: '2', BARTLEBY_STORE: 'sqlite:env.db' }
    expect(loadConfig({ env, flags: { store: 'sqlite:flag.db', port: undefined } })).toMatchObject({
      host: 'file',
      port: 2,
      store: 'sqlite:flag.db',
      queues: { maxPendingRequests: 7, dedupeWindow: '5m' },
    })
  })

  it('insists on an unsupported store by file, environment or flag', () => {
    const insists = (sources: Partial<ConfigSources>) => loadConfig({ env: {}, ...sources }).unsupportedStore
    expect(insists({ file: write('unsupportedStore: true') })).toBe(true)
    expect(insists({ env: { BARTLEBY_UNSUPPORTED_STORE: '1' } })).toBe(true)
    expect(insists({ env: { BARTLEBY_UNSUPPORTED_STORE: '0' } })).toBe(false)
    expect(insists({ flags: { unsupportedStore: true } })).toBe(true)
    expect(problemsOf({ env: { BARTLEBY_UNSUPPORTED_STORE: 'perhaps' } })).toEqual([
      expect.stringContaining('BARTLEBY_UNSUPPORTED_STORE'),
    ])
  })

  it("takes PostgreSQL's own address, which has a password, from the environment", () => {
    const env = { BARTLEBY_POSTGRES_LISTEN_URL: 'postgres://u:secret@db:5432/office' }
    const file = write('postgres: { poolSize: 3, listenUrl: "postgres://file/office" }')
    expect(loadConfig({ env, file }).postgres).toEqual({
      poolSize: 3,
      listenUrl: env.BARTLEBY_POSTGRES_LISTEN_URL,
    })
    expect(loadConfig({ env: { BARTLEBY_POSTGRES_LISTEN_URL: '' } }).postgres).toEqual({ poolSize: 8 })
    const [problem, ...others] = problemsOf({ env: { BARTLEBY_POSTGRES_LISTEN_URL: 'sqlite:secret.db' } })
    expect(problem).toContain('environment BARTLEBY_POSTGRES_LISTEN_URL: postgres.listenUrl')
    expect(others).toEqual([])
  })

  it('reads every key of a YAML file', () => {
    const file = write(`
host: 0.0.0.0
auth:
  tokens:
    - { name: ops, role: operator, sha256: ${HASH} }
metrics: { open: true }
queues: { maxProduceBytes: 1000, dedupeWindow: 90s }
postgres: { poolSize: 20 }
log: { level: debug }
`)
    expect(loadConfig({ file, env: {} })).toMatchObject({
      auth: { tokens: [{ name: 'ops', role: 'operator', sha256: HASH }] },
      metrics: { open: true },
      queues: { maxProduceBytes: 1000, dedupeWindow: '90s' },
      postgres: { poolSize: 20 },
      log: { level: 'debug' },
    })
  })

  it('reads JSON', () => {
    const file = write('{"port": 8080, "log": {"level": "warn"}}', 'bartleby.json')
    expect(loadConfig({ env: {}, flags: { config: file } })).toMatchObject({
      port: 8080,
      log: { level: 'warn' },
    })
  })

  it('is the default one when the file is empty, or its sections are', () => {
    for (const text of ['', '# nothing\n', 'queues:\nauth:\n  tokens:\nport:\n']) {
      expect(loadConfig({ file: write(text), env: {} })).toEqual(loadConfig({ env: {} }))
    }
  })

  it('takes empty variables as not set, and a port of 0 as given', () => {
    const env = { BARTLEBY_HOST: '', BARTLEBY_PORT: '', BARTLEBY_CONFIG: '', BARTLEBY_LOG_LEVEL: 'silent' }
    expect(loadConfig({ env, flags: { port: '0' } })).toMatchObject({
      host: '127.0.0.1',
      port: 0,
      log: { level: 'silent' },
    })
  })

  it('names the file that flags or environment choose', () => {
    const env = { BARTLEBY_CONFIG: 'env.yaml' }
    expect(configFileOf({ env })).toBe('env.yaml')
    expect(configFileOf({ env, flags: { config: 'flag.yaml' } })).toBe('flag.yaml')
    expect(configFileOf({ env: {} })).toBeUndefined()
  })
})

describe('the environment that the console shows', () => {
  it('has a name of its own, in any script, and a colour', () => {
    const environment = 'Düsseldorf · 生产 🔥'
    const file = write(`console: { environment: '${environment}', colour: red }`)
    expect(loadConfig({ file, env: {} }).console).toEqual({ environment, colour: 'red' })
    const shortest = write('console: { environment: p }')
    expect(loadConfig({ file: shortest, env: {} }).console).toEqual({ environment: 'p', colour: 'gray' })
  })

  it.each([
    ["environment: ''", "environment: ''"],
    ["environment: '  '", "environment: '  '"],
    [`environment: ${'x'.repeat(33)}`, `environment: '${'x'.repeat(33)}'`],
    ['environment: "a\\nb"', "environment: 'a"],
    ['colour: pink', "colour: 'pink'"],
  ])('is refused with %s', (text, shown) => {
    const [problem, ...others] = problemsOf({ file: write(`console: { ${text} }`) })
    expect(problem).toContain(`bartleby.yaml: console.${shown}`)
    expect(problem).toMatch(/allowed: (1 to 32 printable characters|one of 'gray', 'red', .*'violet')$/)
    expect(others).toEqual([])
  })
})

describe('the test API', () => {
  it('is switched on by the environment alone', () => {
    expect(loadConfig({ env: { BARTLEBY_TEST_API: '1' } }).testApi).toBe(true)
    expect(loadConfig({ env: { BARTLEBY_TEST_API: '0' } }).testApi).toBe(false)
    expect(problemsOf({ file: write('testApi: true') })).toEqual([
      expect.stringContaining('testApi: unknown key'),
    ])
    expect(problemsOf({ env: { BARTLEBY_TEST_API: 'yes' } })).toEqual([
      "environment BARTLEBY_TEST_API: testApi: 'yes' is not allowed; allowed: '0' or '1'",
    ])
  })
})

describe('a bad configuration', () => {
  it('is reported whole: where, which key, what was given, what is allowed', () => {
    const file = write(`
hots: 0.0.0.0
auth:
  tokens:
    - { name: ops, role: operator, sha256: ${HASH} }
    - { name: boss, role: boss, sha256: ${HASH.toUpperCase()} }
    - { name: half, sha256: ~ }
queues: { max_produce_bytes: 10, dedupeWindow: 5 minutes, maxPendingRequests: 1.5 }
metrics: yes please
postgres: [1]
log: { level: loud }
`)
    const env = { BARTLEBY_PORT: '65536', BARTLEBY_HOST: 'a b' }
    expect(problemsOf({ file, env, flags: { port: '-1', store: 'redis://host' } })).toEqual([
      "bartleby.yaml: hots: unknown key; did you mean 'host'?",
      "bartleby.yaml: auth.tokens[1].role: 'boss' is not allowed; allowed: one of 'viewer', 'operator', 'admin'",
      'bartleby.yaml: auth.tokens[1].sha256: the value (not shown) is not allowed; allowed: 64 lower-case hexadecimal digits',
      "bartleby.yaml: auth.tokens[2].role: is missing; allowed: one of 'viewer', 'operator', 'admin'",
      'bartleby.yaml: auth.tokens[2].sha256: is missing; allowed: 64 lower-case hexadecimal digits',
      "bartleby.yaml: queues.max_produce_bytes: unknown key; did you mean 'maxProduceBytes'?",
      "bartleby.yaml: queues.dedupeWindow: '5 minutes' is not allowed; allowed: a duration above zero such as '30s', '5m' or '24h'",
      'bartleby.yaml: queues.maxPendingRequests: 1.5 is not allowed; allowed: a whole number from 1 to 100000',
      'bartleby.yaml: metrics: must be a mapping, not a string',
      'bartleby.yaml: postgres: must be a mapping, not a list',
      "bartleby.yaml: log.level: 'loud' is not allowed; allowed: one of 'fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'",
      "environment BARTLEBY_HOST: host: 'a b' is not allowed; allowed: a host name or an IP address",
      'environment BARTLEBY_PORT: port: 65536 is not allowed; allowed: a whole number from 0 to 65535',
      "flag --port: port: '-1' is not allowed; allowed: a whole number from 0 to 65535",
      "flag --store: store: 'redis://host' is not allowed; allowed: 'sqlite:PATH', 'sqlite::memory:' or 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'",
    ])
  })

  it('lists the known keys when none is near', () => {
    expect(problemsOf({ file: write('log: { colour: red }') })).toEqual([
      'bartleby.yaml: log.colour: unknown key; known keys here: level, file',
    ])
  })

  it('may hold names that JavaScript knows', () => {
    const file = write('constructor: 1\ntoString: 2\n__proto__: { port: 3 }\n')
    expect(problemsOf({ file })).toHaveLength(3)
  })

  it('that is one problem is one line', () => {
    expect(() => loadConfig({ env: { BARTLEBY_PORT: 'http' } })).toThrow(
      /^invalid configuration: environment BARTLEBY_PORT: port: 'http' is not allowed; .*65535$/,
    )
  })

  it('never shows a password or a token', () => {
    const file = write(`
store: postgress://bob:s3cret@host/db
password: s3cret
auth: { tokens: [ s3cret, { name: a, role: admin, sha256: s3cret, sha265: s3cret } ] }
`)
    const problems = problemsOf({ file, flags: { store: 'postgres//bob:s3cret@host' } })
    expect(problems).toHaveLength(6)
    expect(problems.join('\n')).not.toContain('s3cret')
    expect(problemsOf({ file: write('auth: { tokens: s3cret }') }).join()).not.toContain('s3cret')
    for (const text of [
      'a: "x" s3cret',
      'a: {s3cret',
      '"s3cret',
      '*s3cret',
      'a: b: s3cret',
      '- a\ns3cret',
      '%s3cret\n---\n\t- s3cret',
    ]) {
      const told = problemsOf({ file: write(text) }).join()
      expect(told).not.toBe('')
      expect(told.replace('s3cret: unknown key', '')).not.toContain('s3cret')
    }
  })

  it('names line and column when it is not YAML', () => {
    expect(problemsOf({ file: write('port: 1\nport: 2\n') })).toEqual([
      'bartleby.yaml: line 2, column 1: Map keys must be unique',
    ])
    expect(problemsOf({ file: write('just text') })).toEqual([
      'bartleby.yaml: must be a mapping, not a string',
    ])
  })

  it('may be a file that is not there', () => {
    expect(problemsOf({ file: join(folder, 'none.yaml') })).toEqual([
      'none.yaml: cannot be read: no such file or directory',
    ])
    expect(problemsOf({ file: folder })).toEqual([
      expect.stringContaining('cannot be read: it is a directory'),
    ])
  })

  it('may hold the same token name or hash twice', () => {
    const entry = (name: string, hash: string) => `    - { name: ${name}, role: viewer, sha256: ${hash} }\n`
    const other = 'cd'.repeat(32)
    const file = write(`auth:\n  tokens:\n${entry('a', HASH)}${entry('a', other)}${entry('b', HASH)}`)
    expect(problemsOf({ file })).toEqual([
      'bartleby.yaml: auth.tokens[1].name: is the same as that of auth.tokens[0]',
      'bartleby.yaml: auth.tokens[2].sha256: is the same as that of auth.tokens[0]',
    ])
  })
})
