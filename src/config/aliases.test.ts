import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../core/settings/config-error.ts'
import { loadConfig } from './load.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-config-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const load = (text: string, flags = {}) => {
  const file = join(folder, 'bartleby.yaml')
  writeFileSync(file, text)
  return loadConfig({ file, env: {}, flags })
}

const problemsOf = (text: string): readonly string[] => {
  try {
    load(text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((problem) => problem.replace(`${folder}/bartleby.yaml: `, ''))
  }
  return []
}

describe('settings with two names', () => {
  it('mean the same under both', () => {
    const config = load(
      'http: { host: 127.0.0.2, port: 9, maxBodyBytes: 10 }\nstore: { url: sqlite:x.db, maxConnections: 3 }\n',
    )
    expect(config).toMatchObject({
      host: '127.0.0.2',
      port: 9,
      http: {
        ...load('port: 1').http,
        maxBodyBytes: 10,
        readTimeoutSeconds: 240,
        writeTimeoutSeconds: 240,
      },
      store: 'sqlite:x.db',
      postgres: { poolSize: 3 },
    })
    expect(config.http).not.toHaveProperty('host')
  })

  it('may be given twice if they agree, and give way to flags', () => {
    const text =
      'host: a\nport: 9\nhttp: { host: a, port: 9 }\npostgres: { poolSize: 3 }\nstore: { maxConnections: 3 }\n'
    expect(load(text)).toMatchObject({
      host: 'a',
      port: 9,
      postgres: { poolSize: 3 },
      store: 'sqlite:./data/bartleby.db',
    })
    expect(load(text, { port: 10, store: 'sqlite:y.db' })).toMatchObject({ port: 10, store: 'sqlite:y.db' })
  })

  it('are refused when they differ', () => {
    expect(
      problemsOf(
        'host: a\nport: 1\nhttp: { host: b, port: 2 }\npostgres: { poolSize: 1 }\nstore: { maxConnections: 2 }\n',
      ),
    ).toEqual([
      "http.host: is 'b', but host is 'a'; give one of them",
      'http.port: is 2, but port is 1; give one of them',
      'store.maxConnections: is 2, but postgres.poolSize is 1; give one of them',
    ])
  })

  it('are refused by the name under which they were given', () => {
    const problems = problemsOf(
      'http: { host: "a b", port: 70000, readTimeoutSeconds: 0, maxBodyBytes: 0 }\nstore: { url: "redis://x", size: 1, maxConnections: 0 }\nlog: { file: "" }\n',
    )
    expect(problems.map((problem) => problem.split(':', 1)[0])).toEqual([
      'http.host',
      'http.port',
      'http.readTimeoutSeconds',
      'http.maxBodyBytes',
      'store.url',
      'store.size',
      'store.maxConnections',
      'log.file',
    ])
  })
})
