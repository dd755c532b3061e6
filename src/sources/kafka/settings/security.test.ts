import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../config/load.ts'
import { ConfigError } from '../../../core/settings/config-error.ts'
import type { ConnectionSettings } from '../../../outgoing/kafka/connection.ts'
import { type KafkaOptions, kafkaConnection, kafkaSettings, kafkaWarnings } from './options.ts'

let folder: string
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return name
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-config-'))
  const make = (name: string, ...more: readonly string[]) =>
    execFileSync(
      'openssl',
      // biome-ignore format: one flag beside its value
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-days', '1', '-subj', `/CN=${name}`,
        '-keyout', `${name}.key`, '-out', `${name}.pem`, ...more],
      { cwd: folder, stdio: 'ignore' },
    )
  make('one', '-passout', 'pass:hunter2')
  make('two', '-noenc')
  file('password', 'hunter2\n')
  file('two-lines', 'hunter2\r\n\n')
  file('empty', '\n')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const connectionOf = (given: object): ConnectionSettings => {
  const connection = kafkaConnection({ servers: ['127.0.0.1:9092'], ...given }, folder)
  if (connection === null) throw new Error('there are servers')
  return connection
}

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read()
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems
  }
}

const ssl = (more: object = {}) => ({ security_protocol: 'SSL', ...more })
const scram = (more: object = {}) => ({
  security_protocol: 'SASL_SSL',
  sasl_mechanism: 'SCRAM-SHA-512',
  sasl_username: 'office',
  sasl_password: 'hunter2',
  ...more,
})
const token = (more: object = {}) => ({
  security_protocol: 'SASL_SSL',
  sasl_mechanism: 'OAUTHBEARER',
  sasl_token: 'hunter2',
  ...more,
})

describe('a connection to Kafka', () => {
  it('is there also when the section is not enabled', () => {
    expect(connectionOf({ client_id: 'me' })).toEqual({
      servers: ['127.0.0.1:9092'],
      clientId: 'me',
      protocol: 'PLAINTEXT',
      tls: null,
      sasl: null,
    })
  })

  it('takes its files from beside the configuration, and secrets from files', () => {
    const given = ssl({
      ssl_cafile: 'two.pem',
      ssl_certfile: './one.pem',
      ssl_keyfile: join(folder, 'one.key'),
      ssl_password_file: 'password',
      ssl_check_hostname: false,
    })
    expect(connectionOf(given)).toMatchObject({
      protocol: 'SSL',
      tls: {
        ca: readFileSync(join(folder, 'two.pem'), 'utf8'),
        cert: readFileSync(join(folder, 'one.pem'), 'utf8'),
        key: readFileSync(join(folder, 'one.key'), 'utf8'),
        passphrase: 'hunter2',
        checkHostname: false,
      },
      sasl: null,
    })
    expect(connectionOf(ssl()).tls).toEqual({
      ca: null,
      cert: null,
      key: null,
      passphrase: null,
      checkHostname: true,
    })
    expect(connectionOf(scram()).sasl).toEqual({
      mechanism: 'SCRAM-SHA-512',
      username: 'office',
      password: 'hunter2',
      token: null,
    })
    const filed = scram({ sasl_password: undefined, sasl_password_file: 'two-lines' })
    expect(connectionOf(filed).sasl?.password).toBe('hunter2\r\n')
    expect(connectionOf(token({ sasl_token: null, sasl_token_file: 'password' })).sasl).toEqual({
      mechanism: 'OAUTHBEARER',
      username: null,
      password: null,
      token: 'hunter2',
    })
  })

  it('finds them from wherever the server was started', () => {
    const path = join(folder, 'bartleby.yaml')
    const kafka = scram({
      servers: ['a:1'],
      sasl_password: undefined,
      sasl_password_file: './password',
      ssl_cafile: 'one.pem',
    })
    const outbox = [{ name: 'a', transport: { type: 'kafka', topic: 't', ...kafka } }]
    writeFileSync(path, JSON.stringify({ kafka, outbox }))
    const config = loadConfig({ file: path, env: {} })
    expect(kafkaConnection(config.kafka, '/')).toEqual(kafkaConnection(kafka as KafkaOptions, folder))
    expect(config.outbox[0]?.transport).toMatchObject({
      sasl_password_file: join(folder, 'password'),
      ssl_cafile: join(folder, 'one.pem'),
    })
  })

  it.each<readonly [key: string, given: object]>([
    ['ssl_cafile', { ssl_cafile: 'one.pem' }],
    ['ssl_check_hostname', { ssl_check_hostname: true }],
    ['ssl_password_file', { ssl_password_file: 'password' }],
    ['sasl_mechanism', { sasl_mechanism: 'PLAIN' }],
    ['sasl_username', ssl({ sasl_username: 'office' })],
    ['sasl_token_file', ssl({ sasl_token_file: 'password' })],
    ['ssl_cafile', scram({ security_protocol: 'SASL_PLAINTEXT', ssl_cafile: 'one.pem' })],
    ['sasl_mechanism', { security_protocol: 'SASL_SSL' }],
    ['sasl_username', scram({ sasl_username: undefined })],
    ['sasl_password', scram({ sasl_password: undefined })],
    ['sasl_token', scram({ sasl_token: 'x' })],
    ['sasl_token_file', scram({ sasl_token_file: 'password' })],
    ['sasl_token', token({ sasl_token: undefined })],
    ['sasl_username', token({ sasl_username: 'office' })],
    ['sasl_password', token({ sasl_password: 'x' })],
    ['sasl_password_file', token({ sasl_password_file: 'password' })],
    ['sasl_password_file', scram({ sasl_password_file: 'password' })],
    ['sasl_token_file', token({ sasl_token_file: 'password' })],
    [
      'ssl_password_file',
      ssl({
        ssl_certfile: 'one.pem',
        ssl_keyfile: 'one.key',
        ssl_password: 'hunter2',
        ssl_password_file: 'password',
      }),
    ],
    ['ssl_keyfile', ssl({ ssl_certfile: 'one.pem' })],
    ['ssl_certfile', ssl({ ssl_keyfile: 'two.key' })],
    ['ssl_password', ssl({ ssl_password: 'hunter2' })],
    // Files
    ['ssl_cafile', ssl({ ssl_cafile: 'missing.pem' })],
    ['ssl_cafile', ssl({ ssl_cafile: 'password' })],
    ['ssl_certfile', ssl({ ssl_certfile: 'two.key', ssl_keyfile: 'two.key' })],
    ['ssl_keyfile', ssl({ ssl_certfile: 'one.pem', ssl_keyfile: 'two.key' })],
    ['ssl_keyfile', ssl({ ssl_certfile: 'one.pem', ssl_keyfile: 'one.key' })],
    ['ssl_keyfile', ssl({ ssl_certfile: 'one.pem', ssl_keyfile: 'one.key', ssl_password: 'hunter1' })],
    ['sasl_password_file', scram({ sasl_password: undefined, sasl_password_file: 'missing' })],
    ['sasl_password_file', scram({ sasl_password: undefined, sasl_password_file: '.' })],
    ['sasl_token_file', token({ sasl_token: undefined, sasl_token_file: 'empty' })],
  ])('is refused by the name of the key: %s (%#)', (key, given) => {
    const problems = problemsOf(() => connectionOf(given))
    expect(problems).toHaveLength(1)
    expect(problems[0]?.startsWith(`kafka.${key}: `), problems[0]).toBe(true)
    expect(problems.join()).not.toContain('hunter')
  })

  it('keeps its secrets to itself', () => {
    const wrong = { token_hashes: ['hunter'], sasl_password: 1, sasl_token: '', ssl_password: ['hunter'] }
    const problems = problemsOf(() => kafkaSettings(wrong as unknown as KafkaOptions))
    expect(problems).toHaveLength(4)
    expect(problems.join()).not.toContain('hunter')
  })

  it.each([
    [['kafka-1:9092'], 1],
    [['127.0.0.1:9092', '10.0.0.1:9092'], 1],
    [['127.0.0.1:9092', 'localhost:9092', '[::1]:9092'], 0],
  ])('warns of passwords that anybody on the way can read: %j', (servers, count) => {
    const given = { enabled: true, servers, token_hashes: ['a'.repeat(64)], services: { a: ['d', 'r'] } }
    const plain = { ...given, ...scram({ security_protocol: 'SASL_PLAINTEXT' }) } as unknown as KafkaOptions
    expect(kafkaWarnings(plain)).toHaveLength(count)
    for (const warning of kafkaWarnings(plain)) expect(warning).toMatch(/^kafka\.security_protocol: /)
    expect(kafkaWarnings({ ...given, ...scram() } as unknown as KafkaOptions)).toEqual([])
  })
})
