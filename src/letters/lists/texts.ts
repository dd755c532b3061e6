/**
 * Searchable texts of letters. Matching ignores case and nothing else; the index keeps a coarser form, and every hit is compared with
 * its letter. Texts are filed shortly after the commit, in small batches; `letters_to_file` lists those that wait, which search reads
 * directly.
 */
import type { Clock } from '../../core/clock.ts'
import { storedText } from '../../core/content.ts'
import type { Log } from '../../core/log.ts'
import { Rounds } from '../../core/rounds.ts'
import { sleep } from '../../core/waiting.ts'
import { type Database, type Integer, type Session, sql } from '../../store/database.ts'
import { runGiven } from '../../store/idioms.ts'
import { big, rowShape } from '../../store/row.ts'
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

/** By primary key; only the beginning of large columns. */
const readMany = sql(
  'letterTexts.ofLetters',
  `SELECT ${COLUMNS} FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

/** By primary key, from the lower end. */
const readRange = sql(
  'letterTexts.ofRange',
  `SELECT ${COLUMNS} FROM bartleby.letters WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT $3`,
  { bigints: true },
)

interface LetterWords {
  readonly id: LetterId
  readonly words: string
}

export async function readWords(session: Session, ids: readonly LetterId[]): Promise<LetterWords[]> {
  return (await session.rows<TextRow>(readMany, ids)).map(toWords)
}

async function readWordsBetween(
  session: Session,
  first: bigint,
  last: bigint,
  limit: number,
): Promise<LetterWords[]> {
  return (await session.rows<TextRow>(readRange, first, last, limit)).map(toWords)
}

const toWords = (row: TextRow): LetterWords => ({ id: letterId(row.id), words: wordsOf(row) })

/** All searchable text of a letter, folded. */
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

/** UTF-8 text, of which the last character may be cut off; null for other bytes. */
function textOf(bytes: Uint8Array | null): string | null {
  if (bytes === null) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}

/** Folds case character by character, so that parts of a text stay parts: a final sigma is like any other. Neither index takes U+0000. */
export const fold = (text: string): string => text.replaceAll('\0', '').toLowerCase().replaceAll('ς', 'σ')

const SYMBOLS = 'abcdefghijklmnopqrstuvwxyz0123456789'
const RADIX = SYMBOLS.length
/** Spreads neighbouring characters over all codes. */
const SPREAD = 40_503

const symbol = (value: number): string => SYMBOLS.charAt(value % RADIX)

const CODES = new Map<string, string>()

/**
 * The form that the index keeps: letters and digits only, one for an ASCII character, three for others. PostgreSQL's trigrams skip all
 * other characters, so a search for `==>` would read the whole index, and its locale decides what a letter is. Codes may collide.
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
    // At most one per UTF-16 unit.
    CODES.set(character, code)
  }
  return code
}

const EVERY_US = 1_000_000n
/** Letters per transaction: on SQLite everybody waits for it. */
const BATCH = 100
/** Rest after a batch, in durations of the batch: filing a letter costs as much as several captures, which come first in a storm. */
const REST = 3
const MAX_RANGES = 100

/** One transaction files at a time: a slower one could overwrite a newer text. The only advisory lock of its kind. */
const takeTurn = sql(
  'filing.takeTurn',
  `SELECT pg_try_advisory_xact_lock(hashtextextended('bartleby.letter_texts', 0)) AS taken`,
)

const RANGE = rowShape({ id: big, firstLetter: big, lastLetter: big })

/** The oldest, by primary key. */
const readRanges = sql(
  'filing.ranges',
  `SELECT ${RANGE.columns} FROM bartleby.letters_to_file WHERE id > 0 ORDER BY id LIMIT $1`,
  { bigints: true },
)
const removeRange = sql('filing.removeRange', 'DELETE FROM bartleby.letters_to_file WHERE id = $1')
const shortenRange = sql(
  'filing.shortenRange',
  'UPDATE bartleby.letters_to_file SET first_letter = $2 WHERE id = $1',
)

const TEXTS = 'SELECT given.id, given.words FROM unnest($1::bigint[], $2::text[]) AS given (id, words)'

/** Replaces texts by primary key. */
const writeTexts = sql('filing.write', {
  postgres: `INSERT INTO bartleby.letter_texts (letter_id, words) ${TEXTS}
             ON CONFLICT (letter_id) DO UPDATE SET words = excluded.words WHERE letter_texts.words <> excluded.words`,
  sqlite: `INSERT OR REPLACE INTO letter_texts (rowid, words) ${TEXTS}`,
})

/** Files up to `limit` letters; `more`: others may wait. */
export function fileLetters(
  db: Database,
  limit: number,
): Promise<{ readonly filed: number; readonly more: boolean }> {
  return db.transaction('letters.file', async (tx) => {
    const [turn] = await tx.rows<{ taken: boolean | Integer }>(takeTurn)
    if (turn === undefined || !turn.taken) return { filed: 0, more: false }
    const ranges = await RANGE.all(tx, readRanges, MAX_RANGES)
    const texts = new Map<bigint, string>()
    let room = limit
    for (const { id, firstLetter: first, lastLetter: last } of ranges) {
      const read = await readWordsBetween(tx, first, last, room)
      for (const { id, words } of read) texts.set(id, indexable(words))
      if (read.length === room) {
        // Letters that commit later come with a range of their own.
        await tx.run(shortenRange, id, (read.at(-1)?.id ?? last) + 1n)
        room = 0
        break
      }
      room -= read.length
      await tx.run(removeRange, id)
    }
    const rows = [...texts].map(([id, words]) => ({ id, words }))
    await runGiven(
      tx,
      writeTexts,
      rows.sort((a, b) => (a.id < b.id ? -1 : 1)),
    )
    return { filed: limit - room, more: room === 0 || ranges.length === MAX_RANGES }
  })
}

/** Files waiting texts every second; a stop ends it after the current batch. */
export const filing = (db: Database, clock: Clock, log: Log): Rounds =>
  new Rounds({
    ...{ name: 'letters.file', clock, log, everyUs: EVERY_US, isFirstLater: true },
    act: (signal) => fileAll(db, signal),
    trouble: 'letters were not filed for search; the next round tries again',
  })

async function fileAll(db: Database, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const startedMs = performance.now()
    const { more } = await fileLetters(db, BATCH)
    if (!more) return
    await sleep((performance.now() - startedMs) * REST, signal)
  }
}
