/**
 * Exact counts, of whatever kind: how changes of them are written, folded and read. Every transaction adds signed changes. SQLite, with
 * its single writer, adds them to the totals. PostgreSQL appends them as deltas, so that writers never wait for each other; a folder adds
 * the deltas to the totals, and every read adds what is not folded yet. So the numbers never depend on when a fold runs, who runs it, or
 * whether it was cut short. Nobody ever counts rows.
 *
 * A module declares its counter: the columns of a change, and the tables of totals that it belongs to. `fold.ts` folds.
 */
import { type Statement, sql, type Transaction, type Value } from './database.ts'
import type { Fold } from './fold.ts'
import { takingLock } from './lock.ts'

export interface Totals {
  readonly table: string
  /** Its primary key. */
  readonly keys: readonly string[]
  /** Columns that are added up. */
  readonly sums: readonly string[]
  /** Columns of which the greatest is kept. */
  readonly latest?: readonly string[]
  /** A query over changes that gives the rows they belong to. Left out: one row of the same columns for each. */
  readonly spread?: (changes: string) => string
}

interface CounterShape<Of extends string> {
  /** Begins the names of its statements; that of the fold is the verb of the store's metrics. */
  readonly name: string
  /** The name of the lock, under which the time of the last fold is kept too. */
  readonly lock: string
  /** The table of deltas on PostgreSQL, with a rising `id`. */
  readonly deltas: string
  /** The columns of a change in the order of its values, and their types. */
  readonly given: Readonly<Record<string, 'int' | 'smallint' | 'bigint'>>
  /** Columns that are looked up in the store: a value for each `change`. One that is NULL ends the transaction, which is run again. */
  readonly looked?: Readonly<Record<string, string>>
  readonly totals: Readonly<Record<Of, Totals>>
}

export interface Counter<Of extends string> extends Fold {
  /** Makes changes part of the transaction: the values of each in the order of the columns. */
  add(tx: Transaction, changes: readonly (readonly Value[])[]): void
  /** Adds to one row of the totals, as a repair does: its keys, sums and latest. */
  correct(tx: Transaction, of: Of, row: readonly Value[]): Promise<void>
  /**
   * Declares a statement over totals and what is not folded yet, in one snapshot. `text` gets them as a table called `counted`, several
   * rows of the same key among them; `where` says which. `first` orders and limits the totals where only the first are of interest.
   */
  read(name: string, of: Of, text: (counted: string) => string, options?: ReadOptions): Statement
  /** Removes counts whose `column` has one of these values. Nobody may count under them any more. */
  forget(tx: Transaction, values: readonly number[]): Promise<void>
}

interface ReadOptions {
  readonly where?: string
  /** A query for the values of the first key that are asked for. Totals are sought by it, also without statistics. */
  readonly among?: string
  readonly first?: string
  readonly bigints?: boolean
}

const columnsOf = ({ keys, sums, latest = [] }: Totals): string => [...keys, ...sums, ...latest].join(', ')

const rowsOf = (totals: Totals, changes: string): string =>
  totals.spread?.(changes) ?? `SELECT ${columnsOf(totals)} FROM ${changes}`

/** What an insert does with a row that is there. */
function adding({ keys, sums, latest = [] }: Totals): string {
  const added = [
    ...sums.map((column) => `${column} = totals.${column} + excluded.${column}`),
    ...latest.map((column) => `${column} = greatest(totals.${column}, excluded.${column})`),
  ]
  return `ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${added.join(', ')}`
}

const inserting = (totals: Totals): string =>
  `INSERT INTO bartleby.${totals.table} AS totals (${columnsOf(totals)})`

/** Adds what `changes` are to the totals in the order of their keys, so that two who do it wait for each other in one order. */
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
 * The fold: one statement and so one transaction. It begins by taking or renewing the lock and does nothing without it; with it, the row
 * of the lock stays ours until the commit. It deletes a batch of deltas, reading the primary key from `$2` on, where earlier folds left
 * no dead rows, and adds their sums to the totals. Cost: the rows of the batch.
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

/** So many changes are appended one by one: for short lists PostgreSQL makes a plan in every call, which takes longer than they do. */
const FEW = 4

/** Changes as JSON. Their values are numbers, of which no digit may be lost. */
const jsonOf = (changes: readonly (readonly Value[])[]): string =>
  `[${changes.map((values) => `[${values.join(',')}]`).join(',')}]`

/** Declares a counter, with the statements that all counters have. */
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
  /** SQLite adds to the totals at once, each by primary key: one change as it is, many added up before. */
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
  /** What is counted by is the first key of all. Deltas have no index for it: they are few, because they are folded every second. */
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
        // The values of a change are numbers.
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
      // Deltas before totals: a fold that is under way moves them from the one to the other.
      if (tx.dialect === 'postgres') await tx.run(forgetDeltas, keys)
      for (const statement of forgetTotals) await tx.run(statement, keys)
    },
  }
}
