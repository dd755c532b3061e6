/** Which keys of a connection to Kafka go together. One that does not fit is refused: it would be believed to protect something. */
import type { ConnectionSection } from './schema.ts'

const TLS_KEYS = [
  'ssl_cafile',
  'ssl_certfile',
  'ssl_keyfile',
  'ssl_password',
  'ssl_password_file',
  'ssl_check_hostname',
] as const
const SASL_KEYS = [
  'sasl_mechanism',
  'sasl_username',
  'sasl_password',
  'sasl_password_file',
  'sasl_token',
  'sasl_token_file',
] as const

const SERVER = /^(?:\[[\da-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/

/** Whether it is `HOST:PORT`. */
export const isServer = (text: string): boolean => {
  const port = Number(SERVER.exec(text)?.[1])
  return port >= 1 && port <= 65_535
}

/** Secrets that may lie in a file. */
export const SECRET_KEYS = ['ssl_password', 'sasl_password', 'sasl_token'] as const

/** The problems of a connection whose keys are right one by one. */
export function problemsOfConnection(given: ConnectionSection): readonly string[] {
  const { security_protocol: protocol = 'PLAINTEXT' } = given
  const hasTls = protocol === 'SSL' || protocol === 'SASL_SSL'
  const hasSasl = protocol === 'SASL_PLAINTEXT' || protocol === 'SASL_SSL'
  const strays = [...(hasTls ? [] : TLS_KEYS), ...(hasSasl ? [] : SASL_KEYS)]
  return [
    ...strays
      .filter((key) => given[key] !== undefined)
      .map((key) => `${key}: does not fit security_protocol '${protocol}'`),
    ...(hasTls ? problemsOfTls(given) : []),
    ...(hasSasl ? problemsOfSasl(given, protocol) : []),
    ...SECRET_KEYS.filter((key) => given[key] !== undefined && given[`${key}_file`] !== undefined).map(
      (key) => `${key}_file: give either ${key} or ${key}_file`,
    ),
  ]
}

function problemsOfTls(given: ConnectionSection): readonly string[] {
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

function problemsOfSasl(given: ConnectionSection, protocol: string): readonly string[] {
  const { sasl_mechanism: mechanism } = given
  if (mechanism === undefined) return [`sasl_mechanism: is missing; security_protocol '${protocol}' needs it`]
  const has = (key: 'sasl_password' | 'sasl_token'): boolean =>
    given[key] !== undefined || given[`${key}_file`] !== undefined
  const missing = (key: string): string => `${key}: is missing; sasl_mechanism '${mechanism}' needs it`
  const stray = (key: keyof ConnectionSection): readonly string[] =>
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
