/**
 * The seam between the modules and the two stores. A module writes its SQL once where both stores agree and side by side where
 * they do not; tables are named `bartleby.<table>` and parameters are `$1`, `$2`, …
 *
 * One text may say what only one store knows, and is translated for the other: lists (`= ANY($1::bigint[])`, `<> ALL(…)`, `unnest($1::int[]) AS asked (value)`), casts of
 * parameters (`$1::int`), ranges of an index (`(a, b) > ($1, $2) AND a <= $1`), the schema, locks (`FOR UPDATE`, `pg_advisory_xact_lock`), `least`, `greatest`, `position`, `convert_to(…, 'UTF8')`, records (`jsonb_to_recordset($1::jsonb) AS kept (id bigint, words text)`,
 * `json_array_elements($1::json) AS asked (value)`), what is set for a transaction
 * and rows of values (`given`, see `idioms.ts`) are PostgreSQL's; the index to keep to (`INDEXED BY`) and the keys of the first rows that go
 * (`DELETE FROM a WHERE (b, c) IN (SELECT b, c FROM a … LIMIT $1)`) are SQLite's.
 */

export type Dialect = 'postgres' | 'sqlite'

/** What a list travels as: an array on PostgreSQL, JSON on SQLite, which has no bytes. PostgreSQL takes no U+0000 in texts. */
export type List = readonly (string | number | bigint | Uint8Array | null)[]

export type Value = string | number | bigint | boolean | Uint8Array | null | List

/** A 64-bit integer as the stores give it back; read it with `Number(…)` or `BigInt(…)`. */
export type Integer = number | bigint | string

/** One verb in SQL. Its name labels metrics and names the prepared statement. */
export interface Statement {
  readonly name: string
  readonly postgres: string
  readonly sqlite: string
  /** Whether SQLite reads integers as bigint; needed wherever an instant or a sum is selected. */
  readonly bigints: boolean
  /** 'anew': PostgreSQL makes a plan for the values of every call. Left out: it may keep one. */
  readonly plan?: 'anew'
  /** For PostgreSQL before version 17, where that plans the other text badly. */
  readonly olderPostgres?: string
  /** The columns of the rows that go with it, see `idioms.ts`. */
  readonly given?: Readonly<Record<Dialect, readonly string[]>>
  /** Whether their values stand under the first of the columns. */
  readonly isUnder?: boolean
}

/** The column that is the key of rows, and the names of what stands under it. */
type Under = readonly [key: string, ...columns: string[]]

/** Left out: the other store alone is asked. */
type StatementText = Partial<Readonly<Record<Dialect, string>>>

const declared = new Map<string, Statement>()

/** Every statement of the modules loaded so far; tests look at the plans of all of them. */
export const declaredStatements = (): readonly Statement[] => [...declared.values()]

/** The first rows of a range that go, by their key: PostgreSQL takes them by where they lie, and does not look each up again. */
const FIRST_GO =
  /(DELETE FROM (\S+) WHERE) \(?([\w, ]+?)\)? IN \(\s*SELECT \3 (FROM \2\s[^;]*? LIMIT (?:\(SELECT [^()]+\)|[^()])+)\)/

export const forPostgres = (text: string): string =>
  text
    .replace(/ (?:NOT INDEXED|INDEXED BY \w+)/g, '')
    .replace(FIRST_GO, '$1 ctid = ANY(ARRAY(SELECT ctid $4))')

/** Items of a partition, or letters in its dead queue, by a list of their serials: the last column of their key. */
const LISTED =
  /(\bshelf (?:= [\w$]+|IN \([^()]*\)|= ANY\([^()]*\)) AND (?:[\w.]*leased = [\w$]+ AND )?)((?:\w+\.)?(?:id|serial)) = ANY\((\$\d+::bigint\[\])\)/g

/**
 * The same for a PostgreSQL before 17, where it differs. That looks for a list in the last column of an index only where it expects many rows
 * of the columns before; without statistics it expects one, and compares all items of the partition with the list: 100 ms for
 * a thousand of 60,000. Told the ends of the list, too, it reads from one to the other.
 */
const forOlderPostgres = (text: string): string =>
  text.replace(LISTED, (_, before: string, id: string, list: string) => {
    const end = (which: 'min' | 'max') => `(SELECT ${which}(listed) FROM unnest(${list}) AS listed)`
    return `${before}${id} = ANY(${list}) AND ${id} >= ${end('min')} AND ${id} <= ${end('max')}`
  })

/** Rows that go with a statement: their columns are its first values. */
const GIVEN = /\s+FROM unnest\([^)]+\) AS given \(([^)]+)\)(, |\s+CROSS JOIN LATERAL )?/
const givenIn = (text: string): readonly string[] => GIVEN.exec(text)?.[1]?.split(', ') ?? []

/** SQLite is given one row at a time: a list of theirs beside the join says nothing more. */
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

/**
 * Rows whose values stand under a key: `$1` has the keys and `$2` an object with a list of whole numbers for each; `given.…` is one of
 * them. SQLite is given one row at a time here, too.
 */
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

/** The columns of records, out of the JSON that they travel as. */
const recordsOf = (_: string, place: string, name: string, columns: string): string => {
  const fields = columns.split(',').map((column) => {
    const [field, type = ''] = column.trim().split(' ')
    const value = `value ->> '${field}'`
    return `${/int/.test(type) ? `CAST(${value} AS INTEGER)` : value} AS ${field}`
  })
  return `(SELECT ${fields.join(', ')} FROM json_each(${place})) AS ${name}`
}

/**
 * Ranges of an index whose first columns are one value, with a bound for the next: `(a, b) > (1, 2) AND a <= 1`. PostgreSQL plans those
 * better than equality (see idioms.ts); SQLite compares rows by fewer columns than its index has, and takes equality.
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
  // Prepared statements are known by their name: of two with the same name one would run in place of the other.
  if (
    namesake !== undefined &&
    namesake.postgres + namesake.sqlite !== statement.postgres + statement.sqlite
  ) {
    throw new Error(`two statements are called '${name}'`)
  }
  declared.set(name, statement)
  return statement
}

/** Statements on one connection, in order. Calls may be issued without awaiting the one before. */
export interface Session {
  readonly dialect: Dialect
  /** Runs a statement and gives its rows. `Row` is a promise of the caller about what it selected. */
  rows<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]>
  /** Runs a statement and gives the number of rows it changed. */
  run(statement: Statement, ...values: readonly Value[]): Promise<number>
  /** Runs a statement once per row of values, SQLite's way to write a batch (PostgreSQL unnests arrays); gives the number of rows changed. */
  runEach(statement: Statement, rows: Iterable<readonly Value[]>): Promise<number>
}

/** A session on one moment of the store, which can only read. */
export interface Snapshot extends Session {
  /**
   * Gives all rows of a statement, at most `BATCH_ROWS` at a time, and fewer where reading so many would hold the process up. However long it takes as a whole, nobody waits for an answer of
   * that length, and neither side keeps it in memory. Several may be read beside each other.
   */
  batches<Row>(statement: Statement, ...values: readonly Value[]): AsyncIterable<readonly Row[]>
}

export interface SnapshotOptions {
  /** On a connection of its own, for work that writes elsewhere meanwhile; on a shared one, many of these would wait for each other. */
  readonly apart?: boolean
  /** Once it is aborted, whatever PostgreSQL is asked fails at once, with the reason of the abort. SQLite has answered by then. */
  readonly signal?: AbortSignal | undefined
}

/** Rows that travel together: few trips, and a few hundred kilobytes. */
export const BATCH_ROWS = 2_000

/** A session inside a transaction: what it did is durable when the call that opened it has returned. */
export interface Transaction extends Session {
  /** Whether it was run before and lost a race: what is remembered of the store may be why. Left out: it was not. */
  readonly isRerun?: boolean
  /** Adds a statement that travels with the commit, for writes whose result nobody needs. */
  atCommit(statement: Statement, ...values: readonly Value[]): void
}

export interface TransactionOptions {
  /**
   * All statements are asked for before `work` first waits: on PostgreSQL the COMMIT travels with them, and the whole takes one round trip.
   * `work` cannot change its mind any more: what must not be committed has to fail as a statement. A `work` that fails all the same is
   * reported as `CommittedAnyway`, unless it had asked for nothing.
   */
  readonly oneTrip?: boolean
}

/** One finished use of the store, for metrics. */
export interface StoreCall {
  readonly verb: string
  readonly seconds: number
  readonly ok: boolean
  /** Whether it could write: a transaction, or a statement that is one. */
  readonly writes: boolean
  /** Whether the store was why a write failed; who asks for what cannot be is refused by us. */
  readonly refused: boolean
}

export interface Database {
  readonly dialect: Dialect
  /**
   * Runs `work` in one transaction and commits it. Serialisation failures, deadlocks and busy errors run it
   * again, a bounded number of times, so `work` must not have effects outside the transaction.
   */
  transaction<T>(
    verb: string,
    work: (tx: Transaction) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>
  /**
   * A transaction of exactly one statement, which commits by itself: on PostgreSQL one round trip instead of two.
   */
  statement<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T>
  /** Runs `work` without a transaction of its own: each statement stands alone. */
  session<T>(verb: string, work: (session: Session) => Promise<T>): Promise<T>
  /**
   * Runs `work` on one moment of the store, its first question at the latest; apart, the one at which it starts. It sees no later
   * commit, and writers do not wait for it. It can only read. While it runs the store keeps what it sees, so it must end.
   */
  snapshot<T>(verb: string, work: (session: Snapshot) => Promise<T>, options?: SnapshotOptions): Promise<T>
  /** Runs a script of several statements; for migrations only. */
  script(tx: Transaction, text: string): Promise<void>
  /** Tells the other servers on this store; a hint that may be lost. Does nothing on SQLite. */
  notify(channel: string, payload: string): Promise<void>
  /** Calls `hear` for every notification on `channel`, until the database is closed. */
  listen(channel: string, hear: (payload: string) => void): Promise<void>
  onCall(listener: (call: StoreCall) => void): void
  close(): Promise<void>
}

/** A list as the store takes it. What is left out (`undefined`, from those who have no types) is NULL. */
export function listFor(dialect: Dialect, list: List): string {
  if (dialect === 'sqlite')
    return `[${list.map((item) => (typeof item === 'string' ? JSON.stringify(item) : String(item ?? null))).join(',')}]`
  const quoted = list.map((item) => {
    if (typeof item === 'string') return `"${item.replace(/["\\]/g, '\\$&')}"`
    return item instanceof Uint8Array ? `"\\\\x${Buffer.from(item).toString('hex')}"` : String(item ?? null)
  })
  return `{${quoted.join(',')}}`
}

/** A value as a driver takes it. */
export function parameterFor(dialect: Dialect, value: Value): Exclude<Value, List | boolean> {
  if (typeof value === 'boolean') return dialect === 'postgres' ? String(value) : Number(value)
  return isList(value) ? listFor(dialect, value) : value
}

const isList = (value: Value): value is List => Array.isArray(value)

/** A transaction of one trip was committed although its work failed. What it wrote is there: nobody may run it again. */
export class CommittedAnyway extends Error {
  override readonly name = 'CommittedAnyway'
}

/** The store cannot be used now: unreachable, full, locked for too long. Trying again later may work. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
