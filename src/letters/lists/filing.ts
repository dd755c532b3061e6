/**
 * Filing: making the texts of new and reopened letters searchable, a moment after their commit, in small batches.
 * `letters_to_file` says which are waiting; until then search reads them as they are.
 */

import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { Rounds } from '../../core/rounds.ts'
import { sleep } from '../../core/waiting.ts'
import { type Database, type Integer, sql } from '../../store/database.ts'
import { runGiven } from '../../store/idioms.ts'
import { big, rowShape } from '../../store/row.ts'
import { indexable, readWordsBetween } from './texts.ts'

const EVERY_US = 1_000_000n
/** Letters of one transaction: on SQLite everybody else waits for it. */
const BATCH = 100
/**
 * After a batch the clerk rests this many times as long as it took. Filing a letter costs as much as capturing several;
 * in a storm the captures need the machine, and search finds what is not filed yet without it.
 */
const REST = 3
/** Ranges looked at in one transaction. */
const MAX_RANGES = 100

/**
 * Only one transaction files at a time: of two, the slower could put the text that a letter had over the one it has.
 * Ends with the transaction. A database of ours has no other lock of this kind.
 */
const takeTurn = sql(
  'filing.takeTurn',
  `SELECT pg_try_advisory_xact_lock(hashtextextended('bartleby.letter_texts', 0)) AS taken`,
)

const RANGE = rowShape({ id: big, firstLetter: big, lastLetter: big })

/** The oldest that wait, by primary key. */
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

/** Puts texts in place of the ones that were there, by primary key. */
const writeTexts = sql('filing.write', {
  postgres: `INSERT INTO bartleby.letter_texts (letter_id, words) ${TEXTS}
             ON CONFLICT (letter_id) DO UPDATE SET words = excluded.words WHERE letter_texts.words <> excluded.words`,
  sqlite: `INSERT OR REPLACE INTO letter_texts (rowid, words) ${TEXTS}`,
})

/** Files at most `limit` letters; gives how many, and whether more may wait. */
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
        // Letters that commit later within the range come with a range of their own.
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

/** Files what waits, every second, until it is stopped; then it ends after the batch at hand. */
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
