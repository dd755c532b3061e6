/**
 * The text that a letter is found by. Matching ignores case and nothing else, and is the same everywhere: what the
 * search index keeps is a coarser form of the text, every hit is compared with the letter itself.
 */

import { storedText } from '../../core/content.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { type LetterId, letterId } from '../letter.ts'

const MAX_ERROR = 4_096
const MAX_HEADERS = 4_096
const MAX_PAYLOAD = 8_192
const MAX_WORDS = 16_384

const COLUMNS = `id, source_id, instance_id, correlation_id, error_class,
  substr(error_message, 1, ${MAX_ERROR}) AS error_message, reference, substr(headers, 1, ${MAX_HEADERS}) AS headers,
  substr(payload, 1, ${MAX_PAYLOAD}) AS payload`

interface TextRow {
  readonly id: Integer
  readonly source_id: string
  readonly instance_id: string | null
  readonly correlation_id: string | null
  readonly error_class: string
  readonly error_message: string
  readonly reference: Uint8Array | null
  readonly headers: Uint8Array | null
  readonly payload: Uint8Array | null
}

/** Rows by primary key; of what is large only the beginning. */
const readMany = sql(
  'letterTexts.ofLetters',
  `SELECT ${COLUMNS} FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** A range of letters from its lower end, by primary key. */
const readRange = sql(
  'letterTexts.ofRange',
  `SELECT ${COLUMNS} FROM bartleby.letters WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT $3`,
  { bigints: true },
)

/** A letter's number with the text to find it by. */
interface LetterWords {
  readonly id: LetterId
  readonly words: string
}

/** The texts of these letters. */
export async function readWords(session: Session, ids: readonly LetterId[]): Promise<LetterWords[]> {
  return (await session.rows<TextRow>(readMany, ids)).map(toWords)
}

/** The texts of the first `limit` letters from `first` to `last`. */
export async function readWordsBetween(
  session: Session,
  first: bigint,
  last: bigint,
  limit: number,
): Promise<LetterWords[]> {
  return (await session.rows<TextRow>(readRange, first, last, limit)).map(toWords)
}

const toWords = (row: TextRow): LetterWords => ({ id: letterId(row.id), words: wordsOf(row) })

/** Everything that a letter can be found by, in the form in which texts are compared. */
export function wordsOf(letter: Omit<TextRow, 'id'>): string {
  const parts = [
    letter.source_id,
    letter.instance_id,
    letter.correlation_id,
    letter.error_class,
    letter.error_message,
    storedText(letter.reference).slice(0, MAX_ERROR),
    textOf(letter.headers),
    textOf(letter.payload),
  ]
  const words = parts.filter((part) => part !== null && part !== '').join('\n')
  return fold(words.slice(0, MAX_WORDS))
}

/** The text of bytes that are UTF-8, apart from a character that may be cut at their end; null for other bytes. */
function textOf(bytes: Uint8Array | null): string | null {
  if (bytes === null) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}

/**
 * Texts that differ in case alone become equal. Character by character, so that a part of a text stays a part of it:
 * the sigma at the end of a word is therefore one like any other. Neither index takes U+0000.
 */
export const fold = (text: string): string => text.replaceAll('\0', '').toLowerCase().replaceAll('ς', 'σ')

const SYMBOLS = 'abcdefghijklmnopqrstuvwxyz0123456789'
const RADIX = SYMBOLS.length
/** A multiplier that spreads neighbouring characters over all codes. */
const SPREAD = 40_503

const symbol = (value: number): string => SYMBOLS.charAt(value % RADIX)

const CODES = new Map<string, string>()

/**
 * The folded text as the index keeps it: nothing but letters and digits, one for every ASCII character, three for every
 * other. PostgreSQL's trigrams pass over everything else, and a search for `==>` would read the whole index; which
 * characters are letters would depend on the database's locale. Different characters may share a code.
 */
export const indexable = (folded: string): string => folded.replace(/[^a-z0-9]/g, codeOf)

function codeOf(character: string): string {
  let code = CODES.get(character)
  if (code === undefined) {
    const unit = character.charCodeAt(0)
    const spread = (unit * SPREAD) % (RADIX * RADIX * RADIX)
    code =
      unit < 128
        ? symbol(unit)
        : symbol(spread) + symbol(Math.floor(spread / RADIX)) + symbol(Math.floor(spread / RADIX / RADIX))
    // At most one for every UTF-16 unit there is.
    CODES.set(character, code)
  }
  return code
}
