/** Bytes as people can read them: text where they are text, and a table of hexadecimal numbers where they are not. */
import { hexRowCount, hexRows } from './hex.ts'

export interface Reading {
  readonly form: 'text' | 'hex'
  readonly text: string
  /** Of all bytes, also of those that are left out. */
  readonly size: number
  readonly isCut: boolean
}

/** Reads at most `most` bytes. What holds control characters is no text: it would show less than there is. */
export function readBytes(bytes: Uint8Array, most: number): Reading {
  const shown = bytes.subarray(0, most)
  const isCut = shown.length < bytes.length
  const text = textOf(shown, isCut)
  return text === null
    ? { form: 'hex', text: hexTable(shown), size: bytes.length, isCut }
    : { form: 'text', text, size: bytes.length, isCut }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/

function textOf(bytes: Uint8Array, isCut: boolean): string | null {
  try {
    // A cut may go through a character: the half of it is left out.
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut })
    return CONTROL.test(text) ? null : text
  } catch {
    return null
  }
}

const hexTable = (bytes: Uint8Array): string =>
  hexRows(bytes, hexRowCount(bytes))
    .map(({ offset, digits, characters }) => `${offset}  ${digits}  ${characters}`)
    .join('\n')
