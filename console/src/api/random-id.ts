/** Ids that nobody else makes. */

const BYTES = 16

/** Not `crypto.randomUUID`: browsers have that only on pages that came over TLS or from this machine. */
export const randomId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(BYTES)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
