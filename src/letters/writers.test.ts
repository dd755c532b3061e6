/** Who writes letters: the sources of the product are read for it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const SOURCES = join(import.meta.dirname, '..')
const WRITES = /\b(?:UPDATE|INSERT INTO|DELETE FROM)\s+(?:bartleby\.)?letters\b/

/** Each with what it writes. Migrations write what letters of older versions lack. */
const WRITERS = [
  'letters/capture.ts',
  'letters/change-sql.ts',
  'letters/contents.ts',
  'letters/life-schema.ts',
  'letters/lying/lease.ts',
  'letters/lying/move.ts',
]

it('has no statement that writes letters but in the files that are meant to', () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
  )
  const writers = files.filter((file) => WRITES.test(readFileSync(join(SOURCES, file), 'utf8')))
  expect(writers.toSorted()).toEqual(WRITERS)
})
