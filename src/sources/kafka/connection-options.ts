/** How brokers are reached, as it is given, and the settings that it makes: files are read, secrets found, certificates looked at. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { ConfigError, reasonOf } from '../../core/settings/config-error.ts'
import type { SECRET_KEYS } from './settings/connection-rules.ts'
import type { ConnectionSection } from './settings/schema.ts'
import type { ConnectionSettings } from './settings.ts'

export type ConnectionOptions = ConnectionSection

type SecretKey = (typeof SECRET_KEYS)[number]
type FileKey = 'ssl_cafile' | 'ssl_certfile' | 'ssl_keyfile' | `${SecretKey}_file`

/**
 * The settings of keys that were checked; null when they name no server. Files lie relative to `folder`. Throws one ConfigError with all
 * files that are of no use, each by its key behind `prefix`.
 */
export function connectionOf(
  given: ConnectionOptions,
  folder: string,
  prefix: string,
): ConnectionSettings | null {
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
  return { servers, clientId: given.client_id ?? 'bartleby', protocol, tls, sasl }
}

function tlsOf(given: ConnectionOptions, files: Files): NonNullable<ConnectionSettings['tls']> {
  const ca = files.text('ssl_cafile')
  const cert = files.text('ssl_certfile')
  const key = files.text('ssl_keyfile')
  const passphrase = files.secret('ssl_password')
  if (ca !== null) files.attempt('ssl_cafile', 'holds no certificate in PEM', () => new X509Certificate(ca))
  if (cert !== null) {
    files.attempt('ssl_certfile', 'holds no certificate in PEM', () => new X509Certificate(cert))
  }
  if (cert !== null && key !== null && files.problems.length === 0) {
    // What OpenSSL says would name neither the key nor the file.
    files.attempt(
      'ssl_keyfile',
      'holds no key that fits ssl_certfile and can be opened with ssl_password',
      () => createSecureContext({ cert, key, ...(passphrase === null ? {} : { passphrase }) }),
    )
  }
  return { ca, cert, key, passphrase, checkHostname: given.ssl_check_hostname ?? true }
}

/** The files that the keys name, and what was wrong with them. */
class Files {
  readonly problems: string[] = []
  readonly #given: ConnectionOptions
  readonly #folder: string

  constructor(given: ConnectionOptions, folder: string) {
    this.#given = given
    this.#folder = folder
  }

  /** What stands in the file of a key; null when there is none. */
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

  /** A secret, from its key or its file; editors and `echo` end files with a line break, which is none of it. */
  secret(key: SecretKey): string | null {
    const told = this.problems.length
    const secret = this.#given[key] ?? this.text(`${key}_file`)?.replace(/\r?\n$/, '') ?? null
    if (secret === '' && this.problems.length === told) this.problems.push(`${key}_file: the file is empty`)
    return secret
  }

  /** Tells `problem` of a key when `look` throws. */
  attempt(key: FileKey, problem: string, look: () => unknown): void {
    try {
      look()
    } catch {
      this.problems.push(`${key}: ${problem}`)
    }
  }
}
