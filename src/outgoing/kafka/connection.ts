/** How brokers are reached: keys checked together, files read, secrets found, certificates examined. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { ConfigError, reasonOf } from '../../core/settings/config-error.ts'
import type { ConnectionOptions } from './connection-keys.ts'

export const DEFAULT_CLIENT_ID = 'bartleby'

export const SECURITY_PROTOCOLS = ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'] as const

export const SASL_MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'] as const

const SERVER = /^(?:\[[\da-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/

export const isServer = (text: string): boolean => {
  const port = Number(SERVER.exec(text)?.[1])
  return port >= 1 && port <= 65_535
}

const SECRET_KEYS = ['ssl_password', 'sasl_password', 'sasl_token'] as const

/** Problems of keys together. A key that does not apply is refused: it would be believed to protect something. */
export function problemsOfConnection(given: ConnectionOptions): readonly string[] {
  const { security_protocol: protocol = 'PLAINTEXT' } = given
  const hasTls = protocol === 'SSL' || protocol === 'SASL_SSL'
  const hasSasl = protocol === 'SASL_PLAINTEXT' || protocol === 'SASL_SSL'
  const isStray = (key: string): boolean =>
    (key.startsWith('ssl_') && !hasTls) || (key.startsWith('sasl_') && !hasSasl)
  const strays = Object.entries(given).filter(([key, value]) => value !== undefined && isStray(key))
  return [
    ...strays.map(([key]) => `${key}: does not fit security_protocol '${protocol}'`),
    ...(hasTls ? problemsOfTls(given) : []),
    ...(hasSasl ? problemsOfSasl(given, protocol) : []),
    ...SECRET_KEYS.filter((key) => given[key] !== undefined && given[`${key}_file`] !== undefined).map(
      (key) => `${key}_file: give either ${key} or ${key}_file`,
    ),
  ]
}

function problemsOfTls(given: ConnectionOptions): readonly string[] {
  const { ssl_certfile: certificate, ssl_keyfile: key } = given
  const problems: string[] = []
  if (certificate !== undefined && key === undefined)
    problems.push('ssl_keyfile: is missing; ssl_certfile needs it')
  if (certificate === undefined && key !== undefined)
    problems.push('ssl_certfile: is missing; ssl_keyfile needs it')
  if (key !== undefined) return problems
  for (const password of ['ssl_password', 'ssl_password_file'] as const) {
    if (given[password] !== undefined) problems.push(`${password}: does not fit; there is no ssl_keyfile`)
  }
  return problems
}

function problemsOfSasl(given: ConnectionOptions, protocol: string): readonly string[] {
  const { sasl_mechanism: mechanism } = given
  if (mechanism === undefined) return [`sasl_mechanism: is missing; security_protocol '${protocol}' needs it`]
  const has = (key: 'sasl_password' | 'sasl_token'): boolean =>
    given[key] !== undefined || given[`${key}_file`] !== undefined
  const missing = (key: string): string => `${key}: is missing; sasl_mechanism '${mechanism}' needs it`
  const stray = (key: keyof ConnectionOptions): readonly string[] =>
    given[key] === undefined ? [] : [`${key}: does not fit sasl_mechanism '${mechanism}'`]
  if (mechanism === 'OAUTHBEARER') {
    return [
      ...(has('sasl_token') ? [] : [missing('sasl_token')]),
      ...stray('sasl_username'),
      ...stray('sasl_password'),
      ...stray('sasl_password_file'),
    ]
  }
  return [
    ...(given.sasl_username === undefined ? [missing('sasl_username')] : []),
    ...(has('sasl_password') ? [] : [missing('sasl_password')]),
    ...stray('sasl_token'),
    ...stray('sasl_token_file'),
  ]
}

/** Secrets are texts here, wherever they came from. */
export type ConnectionSettings = Readonly<NonNullable<ReturnType<typeof connectionOf>>>

type SecretKey = (typeof SECRET_KEYS)[number]
type FileKey = 'ssl_cafile' | 'ssl_certfile' | 'ssl_keyfile' | `${SecretKey}_file`

/** Settings of checked keys; null without a server. Files are relative to `folder`. Throws one ConfigError for all bad files, by key. */
export function connectionOf(given: ConnectionOptions, folder: string, prefix: string) {
  const { servers = [], security_protocol: protocol = 'PLAINTEXT' } = given
  if (servers.length === 0) return null
  const files = new Files(given, folder)
  const tls = protocol === 'SSL' || protocol === 'SASL_SSL' ? tlsOf(given, files) : null
  const sasl =
    given.sasl_mechanism === undefined
      ? null
      : {
          mechanism: given.sasl_mechanism,
          username: given.sasl_username ?? null,
          password: files.secret('sasl_password'),
          token: files.secret('sasl_token'),
        }
  if (files.problems.length > 0) throw new ConfigError(files.problems.map((problem) => prefix + problem))
  return { servers, clientId: given.client_id ?? DEFAULT_CLIENT_ID, protocol, tls, sasl }
}

function tlsOf(given: ConnectionOptions, files: Files) {
  const ca = files.text('ssl_cafile')
  const cert = files.text('ssl_certfile')
  const key = files.text('ssl_keyfile')
  const passphrase = files.secret('ssl_password')
  if (ca !== null) files.attempt('ssl_cafile', 'holds no certificate in PEM', () => new X509Certificate(ca))
  if (cert !== null) {
    files.attempt('ssl_certfile', 'holds no certificate in PEM', () => new X509Certificate(cert))
  }
  if (cert !== null && key !== null && files.problems.length === 0) {
    // OpenSSL's own words name neither key nor file.
    files.attempt(
      'ssl_keyfile',
      'holds no key that fits ssl_certfile and can be opened with ssl_password',
      () => createSecureContext({ cert, key, ...(passphrase === null ? {} : { passphrase }) }),
    )
  }
  return { ca, cert, key, passphrase, checkHostname: given.ssl_check_hostname ?? true }
}

class Files {
  readonly problems: string[] = []
  readonly #given: ConnectionOptions
  readonly #folder: string

  constructor(given: ConnectionOptions, folder: string) {
    this.#given = given
    this.#folder = folder
  }

  text(key: FileKey): string | null {
    const path = this.#given[key]
    if (path === undefined) return null
    try {
      return readFileSync(resolve(this.#folder, path), 'utf8')
    } catch (error) {
      this.problems.push(`${key}: '${path}' cannot be read: ${reasonOf(error)}`)
      return null
    }
  }

  /** From its key or its file, without the line break that editors and `echo` add. */
  secret(key: SecretKey): string | null {
    const before = this.problems.length
    const secret = this.#given[key] ?? this.text(`${key}_file`)?.replace(/\r?\n$/, '') ?? null
    if (secret === '' && this.problems.length === before) this.problems.push(`${key}_file: the file is empty`)
    return secret
  }

  /** Reports `problem` when `look` throws. */
  attempt(key: FileKey, problem: string, look: () => unknown): void {
    try {
      look()
    } catch {
      this.problems.push(`${key}: ${problem}`)
    }
  }
}

export interface FoundTopic {
  /** Changes when a topic is deleted and created anew; '' on brokers without ids. */
  readonly id: string
  /** By partition; −1 while there is none. */
  readonly leaders: readonly number[]
  /** null where it was not asked, or brokers do not say. */
  readonly mayRead: boolean | null
  readonly mayWrite: boolean | null
}

export interface TopicsFound {
  readonly found: ReadonlyMap<string, FoundTopic>
  readonly missing: readonly string[]
  /** Hidden from us: brokers do not say whether they exist. */
  readonly forbidden: readonly string[]
}
