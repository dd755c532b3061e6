/** Bytes to and from text and base64, with what every JavaScript runtime has. */
import type { TextEncoding } from '../api/shapes.ts'

export type { TextEncoding }

/** Newer methods of Uint8Array, many times faster where the runtime has them. */
interface Base64Bytes {
  toBase64?: () => string
}
interface Base64Constructor {
  fromBase64?: (text: string) => Uint8Array
}

/** Bytes per `String.fromCharCode` call, below the argument limits of all engines. */
const CHUNK = 8192

/** The bytes that a text of a letter or of its history stands for. */
export const bytesOf = (text: string, encoding: TextEncoding): Uint8Array =>
  encoding === 'base64' ? fromBase64(text) : utf8(text)

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Undefined when the bytes are not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

export function toBase64(bytes: Uint8Array): string {
  // Not in the type library yet.
  const native = (bytes as Uint8Array & Base64Bytes).toBase64
  if (native !== undefined) return native.call(bytes)
  let binary = ''
  for (let start = 0; start < bytes.length; start += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(start, start + CHUNK))
  }
  return btoa(binary)
}

export function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as typeof Uint8Array & Base64Constructor).fromBase64
  if (native !== undefined) return native.call(Uint8Array, text)
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

/** Text as it is, bytes in base64. */
export const payloadFields = (name: string, payload: Uint8Array | string) =>
  typeof payload === 'string'
    ? { [name]: payload }
    : { [name]: toBase64(payload), [`${name}Encoding`]: 'base64' }
