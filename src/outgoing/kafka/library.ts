/** The client library: an optional package, loaded when Kafka is used. Its errors carry payloads; only code and message leave here. */
import { createRequire } from 'node:module'
import { failure } from '../../core/errors.ts'
import type { RecordBytes } from './record.ts'

export type KafkaLibrary = typeof import('@platformatic/kafka')

const NAME = '@platformatic/kafka'

/** The release whose requests are used here, as in package.json. */
export const LIBRARY_VERSION = '2.12.1'

/** Throws where the library is not installed. Loads nothing, so it can be asked before starting. */
export function requireKafkaLibrary(): void {
  try {
    createRequire(import.meta.url).resolve(NAME)
  } catch {
    throw failure('kafka_library_missing', { command: `npm install ${NAME}@${LIBRARY_VERSION}` })
  }
}

export async function loadKafkaLibrary(): Promise<KafkaLibrary> {
  requireKafkaLibrary()
  return import('@platformatic/kafka')
}

interface KafkaTrouble {
  /** Of a broker (`TOPIC_AUTHORIZATION_FAILED`), the system (`ECONNREFUSED`) or the library (`PLT_KFK_TIMEOUT`). */
  readonly code: string
  readonly message: string
}

const LONGEST_MESSAGE = 300

/** The most telling part of an error: a broker's, then the system's, then the library's own. */
export function troubleOf(error: unknown): KafkaTrouble {
  const parts = [...partsOf(error)]
  const brokers = parts.find(({ apiId }) => apiId !== undefined)
  if (brokers !== undefined) return trouble(brokers.apiId, brokers.message)
  const refused = parts.find(({ code }) => code === 'PLT_KFK_AUTHENTICATION')
  if (refused !== undefined) return trouble('SASL_AUTHENTICATION_FAILED', refused.message)
  const system = parts.find(({ code }) => code !== undefined && !code.startsWith('PLT_KFK_'))
  const own = parts[0]
  return system === undefined ? trouble(own?.code, own?.message) : trouble(system.code, system.message)
}

/** Whether one of these codes is anywhere in the error. */
export const isTrouble = (error: unknown, ...codes: readonly string[]): boolean => {
  for (const { apiId, code } of partsOf(error)) {
    if (codes.includes(apiId ?? '') || codes.includes(code ?? '')) return true
  }
  return false
}

const trouble = (code = 'UNKNOWN', message = ''): KafkaTrouble => ({
  code,
  message: message === '' ? code : message.slice(0, LONGEST_MESSAGE),
})

interface ErrorPart {
  readonly apiId?: string
  readonly code?: string
  readonly message: string
}

/** An error and those inside: the library nests them as lists and as causes. */
function* partsOf(error: unknown, depth = 0): Generator<ErrorPart> {
  if (!(error instanceof Error) || depth > 8) return
  // Texts wherever the library and the system set them.
  const { apiId, code, errors } = error as { apiId?: unknown; code?: unknown; errors?: unknown }
  yield {
    message: error.message,
    ...(typeof apiId === 'string' ? { apiId } : {}),
    ...(typeof code === 'string' ? { code } : {}),
  }
  if (Array.isArray(errors)) for (const inner of errors) yield* partsOf(inner, depth + 1)
  yield* partsOf(error.cause, depth + 1)
}

/** The record for the library. Keys go where Java's clients put them; without a key, any partition will do. */
export function messageOf(
  library: KafkaLibrary,
  topic: string,
  { key, value, headers }: RecordBytes,
  partitions: number,
) {
  const keyBytes = key === null ? undefined : toBuffer(key)
  const spot =
    keyBytes === undefined
      ? Math.floor(Math.random() * partitions)
      : library.compatibilityPartitioner({ topic }, keyBytes)
  return {
    topic,
    partition: spot % partitions,
    // Names stay bytes: as texts, repeated ones would merge. The wire knows null, which these types do not.
    headers: new Map(
      headers.map((header) => [toBuffer(header.name), header.value && toBuffer(header.value)]),
    ) as Map<Buffer, Buffer>,
    ...(keyBytes === undefined ? {} : { key: keyBytes }),
    value: (value === null ? null : toBuffer(value)) as Buffer,
  }
}

export type Message = ReturnType<typeof messageOf>

/** A new view each time: map keys are compared by identity, not content. */
const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
