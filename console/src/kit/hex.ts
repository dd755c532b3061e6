/** Bytes in rows: where they are, their hexadecimal digits, and the ASCII characters among them. */

export interface HexRow {
  readonly offset: string
  readonly digits: string
  readonly characters: string
}

const ROW = 16

/** The first `rows` rows. */
export function hexRows(bytes: Uint8Array, rows: number): readonly HexRow[] {
  const shown = bytes.subarray(0, rows * ROW)
  return Array.from({ length: Math.ceil(shown.length / ROW) }, (_, place) => {
    const row = shown.subarray(place * ROW, (place + 1) * ROW)
    return {
      offset: (place * ROW).toString(16).padStart(8, '0'),
      digits: Array.from(row, (byte) => byte.toString(16).padStart(2, '0'))
        .join(' ')
        .padEnd(ROW * 3 - 1),
      characters: Array.from(row, (byte) =>
        byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.',
      ).join(''),
    }
  })
}

/** How many rows the bytes fill. */
export const hexRowCount = (bytes: Uint8Array): number => Math.ceil(bytes.length / ROW)
