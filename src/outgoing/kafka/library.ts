/**
 * The client library: an optional package, loaded when Kafka is used and not before. Its errors carry whole requests and responses, and
 * those carry payloads: only a code and a message of them may go further.
 */
import { createRequire } from 'node:module'
import { failure } from '../../core/errors.ts'
import type { RecordBytes } from './record.ts'

export type KafkaLibrary = typeof import('@platformatic/kafka')

const NAME = '@platformatic/kafka'

/** The release whose requests are made here, as package.json has it too. */
export const LIBRARY_VERSION = '2.12.1'

/** Throws where the library is not installed. Loads nothing: whoever is configured for Kafka asks before it begins. */
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
  /** What a broker said (`TOPIC_AUTHORIZATION_FAILED`), the system (`ECONNREFUSED`), or the library (`PLT_KFK_TIMEOUT`). */
  readonly code: string
  readonly message: string
}

const LONGEST_MESSAGE = 300

/** The most telling part of an error: what a broker said, then what the system said, then what the library says itself. */
export function troubleOf(error: unknown): KafkaTrouble {
  const parts = [...partsOf(error)]
  const said = parts.find(({ apiId }) => apiId !== undefined)
  if (said !== undefined) return trouble(said.apiId, said.message)
  const refused = parts.find(({ code }) => code === 'PLT_KFK_AUTHENTICATION')
  if (refused !== undefined) return trouble('SASL_AUTHENTICATION_FAILED', refused.message)
  const system = parts.find(({ code }) => code !== undefined && !code.startsWith('PLT_KFK_'))
  const own = parts[0]
  return system === undefined ? trouble(own?.code, own?.message) : trouble(system.code, system.message)
}

/** Whether a broker, the system or the library said this, anywhere in the error. */
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

/** An error and all that it holds: the library nests them as lists and as causes. */
function* partsOf(error: unknown, depth = 0): Generator<ErrorPart> {
  if (!(error instanceof Error) || depth > 8) return
  // Both are texts wherever the library and the system set them.
  const { apiId, code, errors } = error as { apiId?: unknown; code?: unknown; errors?: unknown }
  yield {
    message: error.message,
    ...(typeof apiId === 'string' ? { apiId } : {}),
    ...(typeof code === 'string' ? { code } : {}),
  }
  if (Array.isArray(errors)) for (const inner of errors) yield* partsOf(inner, depth + 1)
  yield* partsOf(error.cause, depth + 1)
}

/** The record as the library takes it. Keys go where Java's clients put them; without a key, any partition is as good as another. */
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
    // Names stay bytes: as texts, those that repeat would become one. The wire knows null, which these types do not.
    headers: new Map(
      headers.map((header) => [toBuffer(header.name), header.value && toBuffer(header.value)]),
    ) as Map<Buffer, Buffer>,
    ...(keyBytes === undefined ? {} : { key: keyBytes }),
    value: (value === null ? null : toBuffer(value)) as Buffer,
  }
}

export type Message = ReturnType<typeof messageOf>

/** A view of its own each time: names are keys of a map by what they are, not by what they say. */
const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
