/** Who writes letters: the sources of the product are read for it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const SOURCES = join(import.meta.dirname, '..')

/** How a statement that writes a table begins, in whatever case. */
const VERB = String.raw`\b(?:UPDATE|(?:INSERT|REPLACE|MERGE)(?:\s+OR\s+\w+)?\s+INTO|DELETE\s+FROM|TRUNCATE(?:\s+TABLE)?|COPY)\s+(?:OR\s+\w+\s+)?(?:ONLY\s+)?`
/** A schema, by its name or by a value. */
const SCHEMA = String.raw`(?:"?bartleby"?\.|\$\{[^}]*\})?`
const WRITES = new RegExp(String.raw`${VERB}${SCHEMA}"?letters"?(?![\w$])`, 'i')
/** The table is a value, so the text does not tell which it is. */
const WRITES_ANY = new RegExp(String.raw`${VERB}(?:"?bartleby"?\.)?"?\$\{[^}]*\}"?(?![\w"])`, 'i')
/** The name of the table as a value. */
const NAMES = /['"`](?:bartleby\.)?letters['"`]/

/** Each with what it writes. Migrations write what letters of older versions lack. */
const WRITERS = [
  'letters/capture.ts',
  'letters/change-sql.ts',
  'letters/contents.ts',
  'letters/in-dead-queue/move.ts',
  'letters/schema.ts',
  'queues/schema.ts',
]

/** Each writes tables of its own, by lists that stand in it or are given to it. */
const WRITERS_BY_NAME = [
  'letters/numbers/activity.ts',
  'queues/verbs/clear.ts',
  'redrive/rows/removal.ts',
  'sources/kafka/source.ts',
  'sources/webhooks/registry/holders.ts',
  'store/counter.ts',
]

/** What is no comment. */
const codeOf = (text: string): string => text.replace(/^\s*(?:\/\/|\/\*|\*).*$/gm, '')

const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => ({ file, code: codeOf(readFileSync(join(SOURCES, file), 'utf8')) }))
const filesWith = (pattern: RegExp): string[] =>
  files
    .filter(({ code }) => pattern.test(code))
    .map(({ file }) => file)
    .toSorted()

it('has no statement that writes letters but in the files that are meant to', () => {
  expect(filesWith(WRITES)).toEqual(WRITERS)
})

it('has no statement that writes a table by a value but in files that do not name letters', () => {
  // Tables of an outbox are those of the application, and have their schema in their name.
  const byName = filesWith(WRITES_ANY).filter((file) => !file.startsWith('sources/outbox/'))
  expect(byName).toEqual(WRITERS_BY_NAME)
  const named = files.filter(({ file, code }) => byName.includes(file) && NAMES.test(code))
  expect(named.map(({ file }) => file)).toEqual([])
})

describe('the pattern of statements that write letters', () => {
  it.each([
    'UPDATE bartleby.letters SET status = 1',
    'UPDATE letters SET status = 1',
    'update bartleby.letters set status = 1',
    'Update Only bartleby.letters AS letter SET status = 1',
    'UPDATE OR IGNORE letters SET status = 1',
    'UPDATE\n      bartleby.letters\n SET status = 1',
    'INSERT INTO bartleby.letters (id) VALUES (1)',
    'insert into letters(id) values (1)',
    'INSERT OR REPLACE INTO letters (id) VALUES (1)',
    'REPLACE INTO letters (id) VALUES (1)',
    'DELETE FROM bartleby.letters WHERE id = 1',
    'delete\n from only bartleby.letters',
    'MERGE INTO bartleby.letters AS letter USING given ON letter.id = given.id',
    'merge into letters using given on letters.id = given.id',
    'TRUNCATE bartleby.letters',
    'TRUNCATE TABLE ONLY bartleby.letters',
    'COPY bartleby.letters FROM STDIN',
    'UPDATE "bartleby"."letters" SET status = 1',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source.
    'UPDATE ${schema}letters SET status = 1',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source.
    'INSERT INTO ${fresh.prefix}letters (id)',
  ])('finds %j', (text) => {
    expect(text).toMatch(WRITES)
  })

  it.each([
    'SELECT id FROM bartleby.letters FOR UPDATE',
    'SELECT id FROM bartleby.letters ORDER BY id FOR UPDATE OF letters',
    'UPDATE bartleby.letter_totals SET letters = letters + 1',
    'INSERT INTO bartleby.letters_to_file (first_letter, last_letter)',
    'DELETE FROM bartleby.redrive_letters WHERE redrive = $1',
    'ON CONFLICT DO UPDATE SET letters = known.letters + 1',
    'DELETE FROM bartleby.items USING bartleby.letters',
  ])('does not find %j', (text) => {
    expect(text).not.toMatch(WRITES)
  })

  it.each([
    // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the texts of sources.
    'UPDATE bartleby.${table} SET status = 1',
    'update ${table} set status = 1',
    'DELETE FROM "${table}" WHERE id = 1',
    'MERGE INTO bartleby.${tables[0]} USING given',
    'INSERT INTO ${table} (id) VALUES (1)',
    // biome-ignore-end lint/suspicious/noTemplateCurlyInString: the texts of sources.
  ])('knows that %j may write any table', (text) => {
    expect(text).toMatch(WRITES_ANY)
  })
})
