/**
 * Exact counts: how changes are written, folded and read. Every transaction adds signed changes. SQLite, with its single writer, adds them
 * to the totals. PostgreSQL appends deltas, so that writers never wait for each other; a folder adds them to the totals, and every read
 * adds what is not folded yet. So numbers do not depend on when or by whom a fold runs. Nobody counts rows.
 *
 * A module declares its counter: the columns of a change and the tables of totals. `fold.ts` folds.
 */
import { type Statement, sql, type Transaction, type Value } from './database.ts'
import type { Fold } from './fold.ts'
import { takingLock } from './lock.ts'

interface Totals {
  readonly table: string
  readonly keys: readonly string[]
  readonly sums: readonly string[]
  /** Columns of which the greatest is kept. */
  readonly latest?: readonly string[]
  /** A query over changes that returns rows of totals. Left out: one row of the same columns each. */
  readonly spread?: (changes: string) => string
}

interface CounterShape<Of extends string> {
  /** Prefix of its statements; the fold's is a verb of the store's metrics. */
  readonly name: string
  /** Lock of the fold, under which the time of the last one is kept too. */
  readonly lock: string
  /** Deltas on PostgreSQL, with a rising `id`. */
  readonly deltas: string
  /** Columns and types of a change, in order. */
  readonly given: Readonly<Record<string, 'int' | 'smallint' | 'bigint'>>
  /** Columns looked up for each `change`. NULL ends the transaction, which runs again. */
  readonly looked?: Readonly<Record<string, string>>
  readonly totals: Readonly<Record<Of, Totals>>
}

export interface Counter<Of extends string> extends Fold {
  /** Adds changes to the transaction: values in the order of the columns. */
  add(tx: Transaction, changes: readonly (readonly Value[])[]): void
  /** Adds to one row of totals, for repairs: keys, sums and latest. */
  correct(tx: Transaction, of: Of, row: readonly Value[]): Promise<void>
  /**
   * Declares a statement over totals and the unfolded tail, in one snapshot. `text` gets them as a table `counted`, with several rows per
   * key; `where` selects. `first` orders and limits the totals where only the first matter.
   */
  read(name: string, of: Of, text: (counted: string) => string, options?: ReadOptions): Statement
  /** Removes counts by the first column. Nobody may count under these values any more. */
  forget(tx: Transaction, values: readonly number[]): Promise<void>
}

interface ReadOptions {
  readonly where?: string
  /** Query for values of the first key. Totals are sought by it, also without statistics. */
  readonly among?: string
  readonly first?: string
  readonly bigints?: boolean
}

const columnsOf = ({ keys, sums, latest = [] }: Totals): string => [...keys, ...sums, ...latest].join(', ')

const rowsOf = (totals: Totals, changes: string): string =>
  totals.spread?.(changes) ?? `SELECT ${columnsOf(totals)} FROM ${changes}`

function adding({ keys, sums, latest = [] }: Totals): string {
  const added = [
    ...sums.map((column) => `${column} = totals.${column} + excluded.${column}`),
    ...latest.map((column) => `${column} = greatest(totals.${column}, excluded.${column})`),
  ]
  return `ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${added.join(', ')}`
}

const inserting = (totals: Totals): string =>
  `INSERT INTO bartleby.${totals.table} AS totals (${columnsOf(totals)})`

/** In the order of the keys, so that two folds wait for each other in one order. */
function folding(totals: Totals, changes: string): string {
  const { keys, sums, latest = [] } = totals
  const [key, aggregates] = [
    keys.join(', '),
    [...sums.map((column) => `sum(${column})`), ...latest.map((column) => `max(${column})`)].join(', '),
  ]
  return `${inserting(totals)}
        SELECT ${key}, ${aggregates} FROM (${rowsOf(totals, changes)}) AS spread GROUP BY ${key} ORDER BY ${key}
        ${adding(totals)}`
}

/**
 * The fold: one statement, one transaction. Takes or renews the lock first, does nothing without it, and keeps its row until the commit.
 * Deletes a batch of deltas by primary key from `$2` on, past dead rows of earlier folds, and adds their sums. Cost: the rows of the batch.
 */
const foldStatement = <Of extends string>({ name, deltas, totals }: CounterShape<Of>): Statement =>
  sql(`${name}.fold`, {
    postgres: `
      WITH mine AS (
        ${takingLock({ name: '$3', owner: '$4', deadline: '$5', now: '$6' })} RETURNING name
      ), noted AS (
        INSERT INTO bartleby.count_folds (name, folded_at) SELECT name, $6::bigint FROM mine
        ON CONFLICT (name) DO UPDATE SET folded_at = excluded.folded_at
      ), taken AS (
        DELETE FROM bartleby.${deltas} WHERE id = ANY(ARRAY(
          SELECT id FROM bartleby.${deltas} WHERE id > $2 AND EXISTS (SELECT 1 FROM mine) ORDER BY id LIMIT $1))
        RETURNING *
      ), ${Object.values<Totals>(totals)
        .map((each) => `folded_${each.table} AS (\n        ${folding(each, 'taken')}\n      )`)
        .join(', ')}
      SELECT EXISTS (SELECT 1 FROM mine) AS held, count(*) AS folded, max(id) AS last FROM taken`,
  })

/** Appended one by one: for short lists PostgreSQL plans every call, which takes longer than the statement. */
const FEW = 4

/** As JSON that keeps every digit. */
const jsonOf = (changes: readonly (readonly Value[])[]): string =>
  `[${changes.map((values) => `[${values.join(',')}]`).join(',')}]`

export function counter<Of extends string>(shape: CounterShape<Of>): Counter<Of> {
  const { name, lock, deltas, given, looked = {}, totals } = shape
  const [columns, types] = [Object.keys(given), Object.values(given)]
  const all: readonly Totals[] = Object.values<Totals>(totals)
  const found = Object.entries(looked).map(([column, value]) => `${value} AS ${column}, `)
  const changes = (source: string): string =>
    `SELECT ${found.join('')}change.* FROM ${source} AS change (${columns.join(', ')})`
  const values = types.map((type, i) => `$${i + 1}::${type}`).join(', ')
  const append = (source: string): string =>
    `INSERT INTO bartleby.${deltas} (${[...Object.keys(looked), ...columns].join(', ')}) ${changes(source)}`

  const appendOne = sql(`${name}.add`, { postgres: append(`(VALUES (${values}))`) })
  const appendAll = sql(`${name}.addAll`, {
    postgres: append(`unnest(${types.map((type, i) => `$${i + 1}::${type}[]`).join(', ')})`),
  })
  /** SQLite adds to totals by primary key: one change as it is, many summed first. */
  const adds = (verb: string, source: string, insert: (each: Totals) => string): readonly Statement[] =>
    all.map((each) => {
      const given = `change (${columns.join(', ')}) AS (${source})`
      const text = `WITH ${given}, taken AS (SELECT ${found.join('')}change.* FROM change) ${insert(each)}`
      return sql(`${name}.${verb}.${each.table}`, { sqlite: text })
    })
  const addOneTo = adds(
    'add',
    `VALUES (${values})`,
    (each) =>
      `${inserting(each)} SELECT ${columnsOf(each)} FROM (${rowsOf(each, 'taken')}) AS spread WHERE true ${adding(each)}`,
  )
  const addAllTo = adds(
    'addAll',
    `SELECT ${columns.map((_, i) => `value ->> ${i}`).join(', ')} FROM json_each($1)`,
    (each) => folding(each, 'taken'),
  )
  const correctIn = (each: Totals): Statement => {
    const places = columnsOf(each)
      .split(', ')
      .map((_, i) => `$${i + 1}`)
    const text = `${inserting(each)} VALUES (${places.join(', ')}) ${adding(each)}`
    return sql(`${name}.correct.${each.table}`, text)
  }
  const corrections = new Map(all.map((each) => [each, correctIn(each)]))
  /** By the first key. Deltas have no index for it; they are few, because they are folded every second. */
  const removal = (table: string, key: string): string =>
    `DELETE FROM bartleby.${table} WHERE ${key} = ANY($1::int[])`
  const key = columns[0] ?? ''
  const forgetDeltas = sql(`${name}.forgetDeltas`, { postgres: removal(deltas, key) })
  const forgetTotals = all
    .filter(({ keys }) => keys[0] === key)
    .map(({ table }) => sql(`${name}.forget.${table}`, removal(table, key)))

  return {
    name: `${name}.fold`,
    lock,
    statement: foldStatement(shape),
    add(tx, rows) {
      const [first] = rows
      if (first === undefined) return
      if (tx.dialect === 'sqlite') {
        const [statements, given] = rows.length === 1 ? [addOneTo, first] : [addAllTo, [jsonOf(rows)]]
        for (const statement of statements) tx.atCommit(statement, ...given)
      } else if (rows.length <= FEW) for (const row of rows) tx.atCommit(appendOne, ...row)
      else {
        // Values of changes are numbers.
        const lists = columns.map((_, i) => rows.map((row) => row[i] as number | bigint))
        tx.atCommit(appendAll, ...lists)
      }
    },
    async correct(tx, of, row) {
      const statement = corrections.get(totals[of])
      if (statement !== undefined) await tx.run(statement, ...row)
    },
    read(statement, of, text, { where = 'true', among, first = '', bigints = false } = {}) {
      const table: Totals = totals[of]
      const chosen = (condition: string) =>
        among === undefined ? where : `${where} AND ${table.keys[0]} ${condition}`
      const kept = (condition: string) =>
        `SELECT ${columnsOf(table)} FROM bartleby.${table.table} WHERE ${chosen(condition)} ${first}`
      const isIn = `IN (${among})`
      const tail = `SELECT ${columnsOf(table)} FROM (${rowsOf(table, `bartleby.${deltas}`)}) AS spread WHERE ${chosen(isIn)}`
      return sql(
        statement,
        {
          postgres: text(`((${kept(`= ANY(ARRAY(${among}))`)}) UNION ALL ${tail}) AS counted`),
          sqlite: text(`(${kept(isIn)}) AS counted`),
        },
        { bigints },
      )
    },
    async forget(tx, keys) {
      // Deltas before totals: a fold moves them from one to the other.
      if (tx.dialect === 'postgres') await tx.run(forgetDeltas, keys)
      for (const statement of forgetTotals) await tx.run(statement, keys)
    },
  }
}
