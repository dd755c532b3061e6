/**
 * Expressions for the SQL views, on both stores: bytes as text, names as row keys write them, instants as ISO 8601.
 * They use only what every client of the store has: no functions of ours, nothing that an older SQLite cannot read.
 */
import { NUMBER_DIGITS } from '../../core/row-key.ts'
import type { Dialect } from '../../store/database.ts'

export interface ViewText {
  readonly schema: string
  readonly noBytes: string
  /** UTF-8 without U+0000, which PostgreSQL's texts cannot hold. */
  isText(bytes: string): string
  /** Text where it is text, else base64; NULL stays NULL. */
  asText(bytes: string): string
  /** Whether a row key encodes parts of a name, and the name encoded. */
  hasEncoded(name: string): string
  encoded(name: string): string
  /** UTC as ISO 8601, and as in row keys; six digits, and NULL stays NULL. */
  time(at: string): string
  keyTime(at: string): string
  /** The number of a row as in its key. */
  keyNumber(id: string): string
  /** What stands behind the last slash of a text. */
  lastPart(text: string): string
}

export const VIEW_TEXT: Readonly<Record<Dialect, ViewText>> = {
  postgres: {
    schema: 'bartleby.',
    noBytes: `''::bytea`,
    isText: isTextPostgres,
    asText: (bytes) => `CASE WHEN ${isTextPostgres(bytes)} THEN convert_from(${bytes}, 'UTF8')
         ELSE translate(encode(${bytes}, 'base64'), E'\\n', '') END`,
    hasEncoded: (name) => `${name} ~ '[%/\\\\#?\\u0001-\\u001f\\u007f-\\u009f]'`,
    encoded: encodedPostgres,
    time: (at) => postgresTime(at, 'YYYY-MM-DD"T"HH24:MI:SS.US'),
    keyTime: (at) => postgresTime(at, 'YYYYMMDD"T"HH24MISSUS'),
    // lpad would cut longer numbers.
    keyNumber: (id) => `lpad(${id}::text, greatest(${NUMBER_DIGITS}, length(${id}::text)), '0')`,
    lastPart: (text) => `regexp_replace(${text}, '^.*/', '')`,
  },
  sqlite: {
    schema: '',
    noBytes: `x''`,
    isText: isTextSqlite,
    asText: (
      bytes,
    ) => `CASE WHEN ${bytes} IS NULL THEN NULL WHEN ${isTextSqlite(bytes)} THEN CAST(${bytes} AS TEXT)
         ELSE ${base64Sqlite(bytes)} END`,
    hasEncoded: (name) =>
      `${name} GLOB '*[%/\\#?' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'`,
    encoded: encodedSqlite,
    time: (at) => sqliteTime(at, '%Y-%m-%dT%H:%M:%S', '.'),
    keyTime: (at) => sqliteTime(at, '%Y%m%dT%H%M%S', ''),
    keyNumber: (id) => `printf('%0${NUMBER_DIGITS}d', ${id})`,
    // Trimmed of all that is no slash, from its end.
    lastPart: (text) => `replace(${text}, rtrim(${text}, replace(${text}, '/', '')), '')`,
  },
}

/**
 * convert_from fails on what is not UTF-8. LATIN1 takes every byte but 0 for a character, so that a regular expression
 * without captures, linear in PostgreSQL, can check the bytes.
 */
function isTextPostgres(bytes: string): string {
  return `
  (CASE WHEN position('\\x00'::bytea IN ${bytes}) > 0 THEN false ELSE convert_from(${bytes}, 'LATIN1') ~ '${UTF8_PATTERN}' END)`
}

const UTF8_PATTERN = `^(?:${[
  '[\\u0001-\\u007f]',
  '[\\u00c2-\\u00df][\\u0080-\\u00bf]',
  '\\u00e0[\\u00a0-\\u00bf][\\u0080-\\u00bf]',
  '[\\u00e1-\\u00ec\\u00ee\\u00ef][\\u0080-\\u00bf]{2}',
  '\\u00ed[\\u0080-\\u009f][\\u0080-\\u00bf]',
  '\\u00f0[\\u0090-\\u00bf][\\u0080-\\u00bf]{2}',
  '[\\u00f1-\\u00f3][\\u0080-\\u00bf]{3}',
  '\\u00f4[\\u0080-\\u008f][\\u0080-\\u00bf]{2}',
].join('|')})*$`

/** GLOB reads any byte above 0x7f as one character. Cast to text: Debian and others build SQLite so that no BLOB matches. */
const foreignToAscii = (bytes: string): string =>
  `CAST(${bytes} AS TEXT) GLOB '*[^' || char(1) || '-' || char(127) || ']*'`

/**
 * SQLite takes any bytes for text and can change single ones only by replacing them. So bytes are reduced to ASCII in
 * exact, linear steps: continuation bytes to three classes, classes that a lead byte forbids to a byte that stays,
 * classes to one, and every sequence of the right length to a letter. What is left above ASCII was not UTF-8.
 */
function isTextSqlite(bytes: string): string {
  const steps: (readonly [from: string, to: string])[] = []
  for (let byte = 0x81; byte <= 0xbf; byte++) {
    const first = byte < 0x90 ? 0x80 : byte < 0xa0 ? 0x90 : 0xa0
    if (byte !== first) steps.push([hex(byte), hex(first)])
  }
  for (const forbidden of ['E080', 'E090', 'EDA0', 'F080', 'F490', 'F4A0']) steps.push([forbidden, 'FF'])
  steps.push(['90', '80'], ['A0', '80'])
  for (let lead = 0xc2; lead <= 0xf4; lead++) {
    steps.push([hex(lead) + '80'.repeat(lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3), '61'])
  }
  const reduced = replacedSqlite(
    bytes,
    steps.map(([from, to]) => [`x'${from}'`, `x'${to}'`]),
  )
  return `(instr(${bytes}, x'00') = 0 AND (NOT ${foreignToAscii(bytes)} OR NOT ${foreignToAscii(reduced)}))`
}

/** Before 3.46 SQLite's parser stops at a depth of 100, and a nested call takes some five of it. */
const CALLS_WITHIN = 8

/** Each member of WITH stands beside the one it reads, so that no depth adds up. */
function replacedSqlite(text: string, steps: readonly (readonly [from: string, to: string])[]): string {
  const members: string[] = []
  for (let at = 0; at < steps.length; at += CALLS_WITHIN) {
    const given = at === 0 ? text : 'so_far'
    const replaced = steps
      .slice(at, at + CALLS_WITHIN)
      .reduce((inner, [from, to]) => `replace(${inner},${from},${to})`, given)
    const source = at === 0 ? '' : ` FROM replaced_${members.length - 1}`
    members.push(`replaced_${members.length} (so_far) AS (SELECT ${replaced}${source})`)
  }
  return `(WITH ${members.join(', ')} SELECT so_far FROM replaced_${members.length - 1})`
}

const hex = (byte: number): string => byte.toString(16).toUpperCase().padStart(2, '0')

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/**
 * SQLite copies a value whenever an expression reads it: 10 MB by three bytes would be copied three million times. So
 * bytes are cut into pieces, and these into smaller ones; all sizes are multiples of three.
 */
const PIECES = [196_608, 384] as const

function base64Sqlite(bytes: string): string {
  const [large, small] = PIECES
  return inPieces(bytes, large, 'large', inPieces('large', small, 'small', base64OfPiece('small')))
}

/** Joins `inner` of every piece. The recursion keeps their order. */
const inPieces = (bytes: string, size: number, piece: string, inner: string): string => `
  (WITH RECURSIVE ${piece}_starts (at) AS (
     SELECT 1 UNION ALL SELECT at + ${size} FROM ${piece}_starts WHERE at + ${size} <= length(${bytes})
   )
   SELECT group_concat(${inner}, '') FROM (
     -- The limit keeps SQLite from writing the whole expression in the place of the piece.
     SELECT substr(${bytes}, at, ${size}) AS ${piece} FROM ${piece}_starts LIMIT -1
   ))`

/** Three bytes at a time, as six hex digits. Bytes beyond the end count as 0 and are padded. */
function base64OfPiece(piece: string): string {
  // '0' and the empty text give 0.
  const nibble = (place: number) => `max(0, instr('-123456789ABCDEF', substr(digits, ${place}, 1)) - 1)`
  const three = [1, 2, 3, 4, 5, 6].map((place) => `(${nibble(place)} << ${24 - 4 * place})`).join(' + ')
  const digit = (shift: number) => `substr('${BASE64}', (three >> ${shift} & 63) + 1, 1)`
  const padded = (shift: number, needed: number) =>
    `CASE WHEN at + ${needed} > length(${piece}) THEN '=' ELSE ${digit(shift)} END`
  return `(WITH RECURSIVE threes (at) AS (
      SELECT 1 UNION ALL SELECT at + 3 FROM threes WHERE at + 3 <= length(${piece})
    )
    SELECT group_concat(${digit(18)} || ${digit(12)} || ${padded(6, 1)} || ${padded(0, 2)}, '') FROM (
      SELECT at, ${three} AS three FROM (
        SELECT at, hex(substr(${piece}, at, 3)) AS digits FROM threes LIMIT -1
      ) LIMIT -1
    ))`
}

/** Encoded in row keys: `% / \ # ?` and control characters, the sign of encoding first. */
const ENCODED = ['%', '/', '\\', '#', '?', ...range(0x01, 0x1f), ...range(0x7f, 0x9f)]

function range(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, i) => String.fromCodePoint(first + i))
}

function encodedPostgres(name: string): string {
  return ENCODED.reduce(
    (text, given) => `replace(${text}, chr(${given.codePointAt(0)}), '${percentEncoded(given)}')`,
    name,
  )
}

function encodedSqlite(name: string): string {
  return replacedSqlite(
    name,
    ENCODED.map((given) => [`char(${given.codePointAt(0)})`, `'${percentEncoded(given)}'`]),
  )
}

const percentEncoded = (character: string): string =>
  [...Buffer.from(character)].map((byte) => `%${hex(byte)}`).join('')

/** In two parts: an interval is multiplied by a double, which is exact up to 2^53. */
function postgresTime(at: string, format: string): string {
  return `to_char(timestamp 'epoch' + (${at} / 1000000) * interval '1 second'
     + (${at} % 1000000) * interval '1 microsecond', '${format}')`
}

function sqliteTime(at: string, format: string, point: string): string {
  const micros = `((${at} % 1000000 + 1000000) % 1000000)`
  // printf makes an empty text of NULL; the concatenation keeps it NULL.
  return `strftime('${format}', (${at} - ${micros}) / 1000000, 'unixepoch') || '${point}' || printf('%06d', ${micros})`
}
