/** Letters become items again: what is on file of them is copied within the store, so nothing of a payload leaves it. */
import type { Instant } from '../../core/clock.ts'
import { integerList, sql, type Transaction } from '../../db/database.ts'
import type { LetterId } from '../../letters/letter.ts'
import { SHELF } from '../schema.ts'

const COLUMNS = `id, part, shelf, leased, attempts, created_at, expire_at, case_id, encoding, kind, reference, payload`

/** What an operator made of a text counts; an empty one is kept as NULL. */
const edited = (name: string, empty: string): string =>
  `CASE WHEN letters.edited_${name} IS NULL THEN letters.${name} ELSE nullif(letters.edited_${name}, ${empty}) END`

const contents = (empty: string): string =>
  `${['encoding', 'kind', 'reference'].map((name) => edited(name, empty)).join(', ')},
   CASE WHEN letters.edited = 1 THEN letters.edited_payload ELSE letters.payload END`

/**
 * Letters by primary key, each with the serial that it gets, which is found by the letter's place in the ascending list: a join with
 * what is given would go through all of it for every letter. SQLite is asked for one after the other.
 */
const insertOfLetters = sql('items.insertOfLetters', {
  postgres: `INSERT INTO bartleby.items (${COLUMNS})
    SELECT ($2::bigint[])[width_bucket(letters.id, $1::bigint[])], $3, ${SHELF.queue}, 0, 0, $4, $5, letters.id, ${contents("''::bytea")}
    FROM bartleby.letters WHERE letters.id = ANY($1::bigint[])`,
  sqlite: `INSERT INTO items (${COLUMNS})
    SELECT $2, $3, ${SHELF.queue}, 0, 0, $4, $5, letters.id, ${contents("x''")} FROM letters WHERE letters.id = $1`,
})

/** Items of letters, all into one partition. */
export interface LetterItems {
  readonly part: number
  readonly createdAt: Instant
  readonly expireAt: Instant
  readonly letters: readonly LetterId[]
  /** One for each of them, ascending. */
  readonly serials: readonly number[]
}

/** Puts letters that are locked into a partition; each item carries its letter as its case. */
export async function insertLetters(tx: Transaction, items: LetterItems): Promise<void> {
  const { part, createdAt, expireAt, letters, serials } = items
  if (tx.dialect === 'postgres') {
    const given = letters
      .map((id, i) => ({ id: Number(id), serial: serials[i] ?? 0 }))
      .sort((a, b) => a.id - b.id)
    const inserted = await tx.run(
      insertOfLetters,
      integerList(
        tx.dialect,
        given.map(({ id }) => id),
      ),
      integerList(
        tx.dialect,
        given.map(({ serial }) => serial),
      ),
      part,
      createdAt,
      expireAt,
    )
    if (inserted !== letters.length) throw new Error('letters are gone although they were locked')
    return
  }
  await tx.runEach(
    insertOfLetters,
    letters.map((id, i) => [id, serials[i] ?? 0, part, createdAt, expireAt]),
  )
}
