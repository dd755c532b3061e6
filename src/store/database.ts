/**
 * The seam between modules and the two stores. A module writes SQL once where both stores agree and side by side where they do not; tables
 * are `bartleby.<table>`, parameters `$1`, `$2`, …
 *
 * One text may use what only one store knows; it is translated for the other. PostgreSQL's: lists (`= ANY($1::bigint[])`, `<> ALL(…)`,
 * `unnest($1::int[]) AS asked (value)`), casts of parameters, ranges of an index (`(a, b) > ($1, $2) AND a <= $1`), the schema, locks
 * (`FOR UPDATE`, `pg_advisory_xact_lock`), `least`, `greatest`, `position`, `convert_to(…, 'UTF8')`, records (`jsonb_to_recordset`,
 * `json_array_elements`), settings of a transaction, and rows of values (`given`, see `idioms.ts`). SQLite's: `INDEXED BY`, and deletes of
 * the first rows by key (`DELETE FROM a WHERE (b, c) IN (SELECT b, c FROM a … LIMIT $1)`).
 */

export type Dialect = 'postgres' | 'sqlite'

/** An array on PostgreSQL, which takes no U+0000 in texts; JSON on SQLite, which has no bytes. */
export type List = readonly (string | number | bigint | Uint8Array | null)[]

export type Value = string | number | bigint | boolean | Uint8Array | null | List

/** A 64-bit integer as stores return it; read it with `Number(…)` or `BigInt(…)`. */
export type Integer = number | bigint | string

/** One verb in SQL. Its name labels metrics and the prepared statement. */
export interface Statement {
  readonly name: string
  readonly postgres: string
  readonly sqlite: string
  /** SQLite reads integers as bigint; needed for instants and sums. */
  readonly bigints: boolean
  /** 'anew': PostgreSQL plans every call for its values. */
  readonly plan?: 'anew'
  /** For PostgreSQL before version 17, if that needs another text. */
  readonly olderPostgres?: string
  /** Columns of rows that go with it, see `idioms.ts`. */
  readonly given?: Readonly<Record<Dialect, readonly string[]>>
  /** Their values stand under the first column. */
  readonly isUnder?: boolean
}

/** The key of rows, and the columns under it. */
type Under = readonly [key: string, ...columns: string[]]

/** Left out: only for the other store. */
type StatementText = Partial<Readonly<Record<Dialect, string>>>

const declared = new Map<string, Statement>()

/** Every statement of the modules loaded so far; tests check the plans of all. */
export const declaredStatements = (): readonly Statement[] => [...declared.values()]

/** Deletes of the first rows of a range: PostgreSQL takes them by `ctid`, without another lookup. */
const FIRST_GO =
  /(DELETE FROM (\S+) WHERE) \(?([\w, ]+?)\)? IN \(\s*SELECT \3 (FROM \2\s[^;]*? LIMIT (?:\(SELECT [^()]+\)|[^()])+)\)/

export const forPostgres = (text: string): string =>
  text
    .replace(/ (?:NOT INDEXED|INDEXED BY \w+)/g, '')
    .replace(FIRST_GO, '$1 ctid = ANY(ARRAY(SELECT ctid $4))')

/** Rows of a partition by serial, the last column of their key. */
const LISTED =
  /(\bshelf (?:= [\w$]+|IN \([^()]*\)|= ANY\([^()]*\)) AND (?:[\w.]*leased = [\w$]+ AND )?)((?:\w+\.)?(?:id|serial)) = ANY\((\$\d+::bigint\[\])\)/g

/**
 * PostgreSQL before 17 seeks a list in the last column of an index only where it expects many rows of the columns before. Without statistics
 * it expects one and compares all items of the partition with the list: 100 ms for a thousand of 60,000. The ends of the list bound that.
 */
const forOlderPostgres = (text: string): string =>
  text.replace(LISTED, (_, before: string, id: string, list: string) => {
    const end = (which: 'min' | 'max') => `(SELECT ${which}(listed) FROM unnest(${list}) AS listed)`
    return `${before}${id} = ANY(${list}) AND ${id} >= ${end('min')} AND ${id} <= ${end('max')}`
  })

/** Rows that go with a statement; their columns are its first values. */
const GIVEN = /\s+FROM unnest\([^)]+\) AS given \(([^)]+)\)(, |\s+CROSS JOIN LATERAL )?/
const givenIn = (text: string): readonly string[] => GIVEN.exec(text)?.[1]?.split(', ') ?? []

/** SQLite gets one row at a time: a list of theirs beside the join adds nothing. */
const oneGiven = (text: string): string => {
  const columns = givenIn(text)
  if (columns.length === 0) return text
  return text
    .replace(GIVEN, (_clause, _names, others?: string) => (others === undefined ? '' : ' FROM '))
    .replace(/ AND [\w.]+ = ANY\(\$(\d+)::\w+\[\]\)/g, (condition, place: string) =>
      Number(place) <= columns.length ? '' : condition,
    )
    .replace(/\bgiven\.(\w+)/g, (_, name: string) => `$${columns.indexOf(name) + 1}`)
}

/** Values under a key: `$1` has the keys, `$2` an object of lists of whole numbers, `given.…` one of these. SQLite gets one row at a time. */
function underKey(text: string, [key, ...columns]: Under): Readonly<Record<Dialect, string>> {
  const valued = (placeOf: (at: number) => string) => (_: string, name: string) =>
    placeOf(columns.indexOf(name))
  const behind = (place: string, n: string) => (Number(n) > 2 ? `$${Number(n) - 1 + columns.length}` : place)
  return {
    postgres: text.replace(
      /\bgiven\.(\w+)/g,
      valued((at) => `($2::jsonb -> ${key}::text ->> ${at})::bigint`),
    ),
    sqlite: text
      .replace(/\$(\d+)/g, behind)
      .replace('= ANY($1::bigint[])', () => '= $1')
      .replace(
        /\bgiven\.(\w+)/g,
        valued((at) => `$${at + 2}`),
      ),
  }
}

const recordsOf = (_: string, place: string, name: string, columns: string): string => {
  const fields = columns.split(',').map((column) => {
    const [field, type = ''] = column.trim().split(' ')
    const value = `value ->> '${field}'`
    return `${/int/.test(type) ? `CAST(${value} AS INTEGER)` : value} AS ${field}`
  })
  return `(SELECT ${fields.join(', ')} FROM json_each(${place})) AS ${name}`
}

/**
 * Ranges of an index whose first columns are one value: `(a, b) > (1, 2) AND a <= 1`. PostgreSQL plans these better than equality (see
 * idioms.ts); SQLite compares rows by fewer columns than its index has, and gets equality.
 */
const RANGE =
  /\(([\w., ]+)\) ([<>]=?) \(([^()]+)\)\s+AND \(?([\w., ]+?)\)? [<>]= (?:\(([^()]+)\)|(\S+?)(?=[\s)]|$))/g

const rangeByEquality = (whole: string, ...found: readonly (string | undefined)[]): string => {
  const [columns, values, first, bounds] = [found[0], found[2], found[3], found[4] ?? found[5]].map(
    (list = '') => list.split(', '),
  ) as [string[], string[], string[], string[]]
  const isRange =
    (first.length < columns.length || found[1] === '>=') &&
    first.every((column, at) => column === columns[at] && bounds[at] === values[at])
  if (!isRange) return whole
  const [rest, limits] = [columns.slice(first.length), values.slice(first.length)].map((list) =>
    list.length === 1 ? list[0] : `(${list.join(', ')})`,
  )
  const equal = first.map((column, at) => `${column} = ${values[at]}`)
  return [...equal, ...(first.length < columns.length ? [`${rest} ${found[1]} ${limits}`] : [])].join(' AND ')
}

export const forSqlite = (text: string): string =>
  oneGiven(text)
    .replace(RANGE, rangeByEquality)
    .replaceAll('bartleby.', '')
    .replace(/= ANY\(ARRAY\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\)/g, 'IN ($1)')
    .replace(/jsonb_to_recordset\((\$\d+)::jsonb\) AS (\w+) \(([^)]+)\)/g, recordsOf)
    .replace(/convert_to\(([\w.$]+), 'UTF8'\)/g, 'CAST($1 AS BLOB)')
    .replace(/\bleast\(/g, 'min(')
    .replace(/\bgreatest\(/g, 'max(')
    .replace(/json_array_elements\((\$\d+)::json\) AS (\w+) \(value\)/g, 'json_each($1) AS $2')
    .replace(/position\((.+) IN (\w+)\)/g, 'instr($2, $1)')
    .replace(/\bpg_(?:try_)?advisory_xact_lock(?:_shared)?\((?:[^()]|\([^()]*\))*\)/g, '1')
    .replace(/, set_config\([^)]*\) AS \w+/g, '')
    .replace(/= ANY\((\$\d+)(?:::[^[\]]*\[\])*\)/g, 'IN (SELECT value FROM json_each($1))')
    .replace(/unnest\((\$\d+)::\w+\[\]\) AS (\w+) \(value\)/g, 'json_each($1) AS $2')
    .replace(/<> ALL\((\$\d+)(?:::\w+\[\])?\)/g, 'NOT IN (SELECT value FROM json_each($1))')
    .replace(/(\$\d+)::\w+(?:\[\])?/g, '$1')
    .replace(/ FOR (?:UPDATE|KEY SHARE)(?: SKIP LOCKED)?/g, '')
    .replace(/\$(\d+)/g, '?$1')

/** Declares a statement; `text` is one string where both stores understand it or it can be translated. */
export function sql(
  name: string,
  text: string | StatementText,
  options: { readonly bigints?: boolean; readonly plan?: 'anew'; readonly under?: Under } = {},
): Statement {
  const { under } = options
  const once = (text: string) =>
    under === undefined ? { postgres: text, sqlite: text } : underKey(text, under)
  const variants = typeof text === 'string' ? once(text) : { postgres: '', sqlite: '', ...text }
  const columns = under?.map((column) => column.replace(/^\w+\./, ''))
  const postgres = forPostgres(variants.postgres)
  const olderPostgres = forOlderPostgres(postgres)
  const statement = {
    name,
    postgres,
    sqlite: forSqlite(variants.sqlite),
    bigints: options.bigints ?? false,
    ...(options.plan !== undefined && { plan: options.plan }),
    ...(olderPostgres !== postgres && { olderPostgres }),
    given: {
      postgres: columns ?? givenIn(variants.postgres),
      sqlite: columns ?? givenIn(variants.sqlite),
    },
    isUnder: under !== undefined,
  }
  const namesake = declared.get(name)
  // Prepared statements go by name: of two with one name, one would run in place of the other.
  if (
    namesake !== undefined &&
    namesake.postgres + namesake.sqlite !== statement.postgres + statement.sqlite
  ) {
    throw new Error(`two statements are called '${name}'`)
  }
  declared.set(name, statement)
  return statement
}

/** Statements on one connection, in order. Calls need not await the one before. */
export interface Session {
  readonly dialect: Dialect
  /** `Row` is the caller's promise about the selected columns. */
  rows<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]>
  run(statement: Statement, ...values: readonly Value[]): Promise<number>
  /** Once per row of values, SQLite's way to write a batch; returns the number of changed rows. */
  runEach(statement: Statement, rows: Iterable<readonly Value[]>): Promise<number>
}

/** One moment of the store, read only. */
export interface Snapshot extends Session {
  /** At most `BATCH_ROWS` at a time, fewer where that would block the process. Neither side keeps all rows; several may be read side by side. */
  batches<Row>(statement: Statement, ...values: readonly Value[]): AsyncIterable<readonly Row[]>
}

export interface SnapshotOptions {
  /** On a connection of its own, for work that writes elsewhere meanwhile; on shared ones, many of these would wait for each other. */
  readonly apart?: boolean
  /** An abort fails pending calls at once, with its reason. SQLite has answered by then. */
  readonly signal?: AbortSignal | undefined
}

/** A few hundred kilobytes per trip. */
export const BATCH_ROWS = 2_000

/** Durable when the call that opened it has returned. */
export interface Transaction extends Session {
  /** Ran before and lost a race: something remembered of the store may be why. */
  readonly isRerun?: boolean
  /** Travels with the commit, for writes whose result nobody needs. */
  atCommit(statement: Statement, ...values: readonly Value[]): void
}

export interface TransactionOptions {
  /**
   * All statements are issued before `work` first waits: PostgreSQL gets the COMMIT with them, in one round trip. `work` cannot change its
   * mind: what must not be committed has to fail as a statement. Any other failure is reported as `CommittedAnyway`.
   */
  readonly oneTrip?: boolean
}

export interface StoreCall {
  readonly verb: string
  readonly seconds: number
  readonly ok: boolean
  /** A transaction, or a statement that is one. */
  readonly writes: boolean
  /** The store was why a write failed, not a refusal of ours. */
  readonly refused: boolean
}

export interface Database {
  readonly dialect: Dialect
  /** Serialisation failures, deadlocks and busy errors run `work` again, a bounded number of times: it must have no effects outside. */
  transaction<T>(
    verb: string,
    work: (tx: Transaction) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>
  /** One statement that commits by itself: on PostgreSQL one round trip instead of two. */
  statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T>
  /** No transaction: each statement stands alone. */
  session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T>
  /**
   * One moment of the store, fixed at the first read at the latest; apart, at the start. Later commits are invisible, and writers do not
   * wait. The store keeps that moment while it runs, so it must end.
   */
  snapshot<T>(verb: string, work: (session: Snapshot) => Promise<T>, options?: SnapshotOptions): Promise<T>
  /** Several statements; for migrations only. */
  script(tx: Transaction, text: string): Promise<void>
  /** A hint to other servers that may be lost. Does nothing on SQLite. */
  notify(channel: string, payload: string): Promise<void>
  /** Until the database is closed. */
  listen(channel: string, hear: (payload: string) => void): Promise<void>
  onCall(listener: (call: StoreCall) => void): void
  close(): Promise<void>
}

/** `undefined`, from untyped callers, is NULL. */
export function listFor(dialect: Dialect, list: List): string {
  if (dialect === 'sqlite')
    return `[${list.map((item) => (typeof item === 'string' ? JSON.stringify(item) : String(item ?? null))).join(',')}]`
  const quoted = list.map((item) => {
    if (typeof item === 'string') return `"${item.replace(/["\\]/g, '\\$&')}"`
    return item instanceof Uint8Array ? `"\\\\x${Buffer.from(item).toString('hex')}"` : String(item ?? null)
  })
  return `{${quoted.join(',')}}`
}

export function parameterFor(dialect: Dialect, value: Value): Exclude<Value, List | boolean> {
  if (typeof value === 'boolean') return dialect === 'postgres' ? String(value) : Number(value)
  return isList(value) ? listFor(dialect, value) : value
}

const isList = (value: Value): value is List => Array.isArray(value)

/** Committed although its work failed. Its writes are durable: never run it again. */
export class CommittedAnyway extends Error {
  override readonly name = 'CommittedAnyway'
}

/** Unreachable, full, or locked for too long. Later may work. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
