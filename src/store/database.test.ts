import { describe, expect, it } from 'vitest'
import { type Dialect, type List, listFor, sql } from './database.ts'

const inSqlite = (text: string): string => sql(`test.translated ${text}`, text).sqlite

describe('one text for both stores', () => {
  it('asks SQLite for a range of an index by equality', () => {
    expect(
      inSqlite('WHERE (part, shelf, id) > ($1, 0, $2) AND (part, shelf) <= ($1, 0) AND leased <> 1'),
    ).toBe('WHERE part = ?1 AND shelf = 0 AND id > ?2 AND leased <> 1')
    expect(inSqlite('WHERE (channel, at, id) < ($4, $1, $2) AND channel >= $4')).toBe(
      'WHERE channel = ?4 AND (at, id) < (?1, ?2)',
    )
    expect(inSqlite('WHERE (a, b, c, d) > ($1, $2, $3, $4) AND (a, b) <= ($1, $2) ORDER BY a')).toBe(
      'WHERE a = ?1 AND b = ?2 AND (c, d) > (?3, ?4) ORDER BY a',
    )
    expect(inSqlite('WHERE (a.b, c) > (asked.n, $2) AND a.b <= asked.n)')).toBe(
      'WHERE a.b = asked.n AND c > ?2)',
    )
    expect(inSqlite('WHERE (series, created_at) >= ($1, $2)\n  AND series <= $1')).toBe(
      'WHERE series = ?1 AND created_at >= ?2',
    )
    expect(inSqlite('WHERE (at, id) < ($1, $2) AND at >= $12')).toBe(
      'WHERE (at, id) < (?1, ?2) AND at >= ?12',
    )
    expect(inSqlite('WHERE (a, b) >= ($1, $2) AND (a, b) <= ($1, $2)')).toBe('WHERE a = ?1 AND b = ?2')
  })

  it('takes the first rows that go by where they lie on PostgreSQL, and by their key on SQLite', () => {
    const text = `DELETE FROM bartleby.t WHERE (a, b) IN (
      SELECT a, b FROM bartleby.t INDEXED BY t_oldest
      WHERE (at, c) > ($1, 0) ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING at`
    const { postgres, sqlite } = sql('test.firstGo', text)
    expect(postgres.replaceAll(/\s+/g, ' ')).toBe(
      'DELETE FROM bartleby.t WHERE ctid = ANY(ARRAY(SELECT ctid FROM bartleby.t WHERE (at, c) > ($1, 0) ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING at',
    )
    expect(sqlite.replaceAll(/\s+/g, ' ')).toBe(
      'DELETE FROM t WHERE (a, b) IN ( SELECT a, b FROM t INDEXED BY t_oldest WHERE (at, c) > (?1, 0) ORDER BY at LIMIT ?2) RETURNING at',
    )
  })

  it('tells PostgreSQL before 17 the ends of a list in the last column of a key, and no other version', () => {
    const text = 'SELECT a FROM bartleby.t WHERE part = $1 AND shelf = 0 AND id = ANY($2::bigint[])'
    const { postgres, olderPostgres } = sql('test.listed', text)
    expect(postgres).toBe(text)
    expect(olderPostgres).toBe(
      `${text} AND id >= (SELECT min(listed) FROM unnest($2::bigint[]) AS listed) AND id <= (SELECT max(listed) FROM unnest($2::bigint[]) AS listed)`,
    )
    expect(
      sql('test.unlisted', 'SELECT a FROM bartleby.t WHERE id = ANY($1::bigint[])').olderPostgres,
    ).toBeUndefined()
  })

  it('translates lists, casts, locks and the schema', () => {
    expect(
      inSqlite('SELECT id FROM bartleby.t WHERE id = ANY($1::bigint[]) AND a = $2::int FOR UPDATE'),
    ).toBe('SELECT id FROM t WHERE id IN (SELECT value FROM json_each(?1)) AND a = ?2')
  })
})

describe('a list', () => {
  it.each<[Dialect, string]>([
    ['sqlite', '[1,"a",null,null]'],
    ['postgres', '{1,"a",null,null}'],
  ])('has NULL where a value is left out, on %s', (dialect, text) => {
    expect(listFor(dialect, [1, 'a', null, undefined] as unknown as List)).toBe(text)
  })
})
