/**
 * The statements that write letters, made from the table of transitions. All take the letters as `$1`, what goes with each of them as
 * `$2` (JSON by their numbers), the instant `$3`, who and why `$4` and `$5`, and the series of each engine `$6`. SQLite is asked to
 * change one letter after the other, with its number and what goes with it alone: joined with a list, `UPDATE … FROM` copies whole rows
 * aside first, and took five times as long.
 *
 * What goes with a letter is looked up by its number: PostgreSQL makes a join with unnested parameters go through all of them for
 * every letter or, without statistics, through all letters.
 */
import { type Dialect, type Statement, sql } from '../db/database.ts'
import { STATUS } from './letter.ts'
import { PLACE_COLUMNS } from './lying/place.ts'
import { type StateColumn, type Transition, type TransitionName, transitionOf } from './transitions.ts'

/** What goes with one letter. Bytes are base64 on PostgreSQL and hex on SQLite, instants are texts: JSON numbers lose digits. */
export type Given = Readonly<Record<string, string | number | null>>

export const bytesFor = (dialect: Dialect, bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes).toString(dialect === 'postgres' ? 'base64' : 'hex')

type Kind = 'text' | 'int' | 'bigint' | 'smallint' | 'bytes' | 'json'

/** A value out of what is given, which `from` is. */
function valueIn(dialect: Dialect, from: string, name: string, kind: Kind = 'text'): string {
  const text = `(${from} ->> '${name}')`
  const isPostgres = dialect === 'postgres'
  switch (kind) {
    case 'text':
      return text
    case 'json':
      return isPostgres ? `convert_to(${text}, 'UTF8')` : `CAST(${text} AS BLOB)`
    case 'bytes':
      return isPostgres ? `decode(${text}, 'base64')` : `unhex(${text})`
    default:
      return isPostgres ? `${text}::${kind}` : `CAST(${text} AS INTEGER)`
  }
}

/** What is given for the letter at hand, in the statement that changes it. */
const FROM = { postgres: '($2::jsonb -> letters.id::text)', sqlite: '$2' } as const

/** The failure that stands on a letter, as columns and where their values come from. */
function failureColumns(dialect: Dialect): string[] {
  const given = (name: string, kind?: Kind) => valueIn(dialect, FROM[dialect], name, kind)
  const least = dialect === 'postgres' ? 'least' : 'min'
  const texts = ['reason', 'error_class', 'error_message', 'error_stack', 'failed_by'] as const
  return [
    `first_failure_at = ${least}(first_failure_at, ${given('first_failure_at', 'bigint')})`,
    `last_failure_at = ${given('last_failure_at', 'bigint')}`,
    `reported_count = ${given('reported_count', 'int')}`,
    `died_as = coalesce(${given('died_as')}, died_as)`,
    ...texts.map((name) => `${name} = ${given(name)}`),
  ]
}

/** Where a letter lies, from what is given, unless that says that it stays where it is. */
function placeColumns(dialect: Dialect): string[] {
  const given = (name: string, kind?: Kind) => valueIn(dialect, FROM[dialect], name, kind)
  const stays = `${given('stays', 'int')} = 1`
  const kinds = { part: 'int', shelf: 'smallint', serial: 'bigint', laid_at: 'bigint' } as const
  const places = Object.entries(PLACE_COLUMNS).map(([column, empty]) => {
    const kind = (kinds as Readonly<Record<string, Kind>>)[column]
    return [column, kind === undefined ? empty : given(column, kind)] as const
  })
  return [...places, ['dead_queue', given('dead_queue')] as const].map(
    ([column, value]) => `${column} = CASE WHEN ${stays} THEN ${column} ELSE ${value} END`,
  )
}

function setColumn(dialect: Dialect, act: TransitionName, column: StateColumn): string[] {
  const given = (name: string, kind?: Kind) => valueIn(dialect, FROM[dialect], name, kind)
  switch (column) {
    case 'resolution':
      return [`resolution = '${act}'`]
    case 'resolved_at':
    case 'expired_at':
    case 'confirmed_at':
      return [`${column} = CAST($3 AS bigint)`]
    case 'resolved_by':
      return [`resolved_by = coalesce(${given('by')}, $4)`]
    case 'notes':
      return ['notes = $5']
    case 'sent_as':
    case 'sent_to':
      return [`${column} = ${given(column)}`]
    case 'redrive':
    case 'drawer':
      return [`${column} = ${given(column, 'int')}`]
    case 'dequeue_count':
      return [`dequeue_count = dequeue_count + coalesce(${given('deliveries', 'int')}, 0)`]
    case 'failure':
      return failureColumns(dialect)
    case 'place':
      return placeColumns(dialect)
  }
}

const resetColumn = (column: StateColumn): string[] =>
  column === 'place'
    ? Object.entries(PLACE_COLUMNS).map(([name, empty]) => `${name} = ${empty}`)
    : [`${column} = NULL`]

/** What an act makes of the row of a letter. */
function assignments(dialect: Dialect, act: TransitionName): string {
  const { to, sets, resets, word }: Transition = transitionOf(act)
  const version = word === null ? [] : ['version = version + 1']
  const status = to === null || to === 'removed' ? [] : [`status = ${STATUS[to]}`]
  const written = sets.flatMap((column) => setColumn(dialect, act, column))
  return [...version, ...status, ...written, ...resets.flatMap(resetColumn)].join(', ')
}

/** Letters whose status allows the act. The plus keeps the stores from looking for its letters among all of a status. */
export const fromStatus = (act: TransitionName): string =>
  `+status IN (${transitionOf(act)
    .from.map((status) => STATUS[status])
    .join(', ')})`

const RECORD = `created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor, notes, error,
  input, output, short_key`

const CORRELATION_ID = 'coalesce(letters.correlation_id, letters.source_id)'

/** A worker's run may be what the row of history tells of: it has names of its own. */
function recorded(dialect: Dialect, letter: string, from: string, correlationId: string): string {
  const given = (name: string, kind?: Kind) => valueIn(dialect, from, name, kind)
  const correlation = `coalesce(${given('correlation_id')}, ${correlationId})`
  const at = `coalesce(${given('recorded_at', 'bigint')}, CAST($3 AS bigint))`
  const ofEngine =
    dialect === 'postgres'
      ? `($6::jsonb ->> ${letter}.engine)::int`
      : `(SELECT value FROM json_each($6) WHERE key = ${letter}.engine)`
  return `SELECT ${at}, coalesce(${given('duration_ms', 'bigint')}, 0), ${letter}.id,
      coalesce(${given('series', 'int')}, ${ofEngine}), ${letter}.version, ${correlation},
      CASE WHEN ${given('correlation_id')} IS NULL THEN ${letter}.instance_id ELSE ${given('instance_id')} END,
      coalesce(${given('actor')}, ${given('by')}, $4), $5, ${given('error')}, ${inputOf(dialect, letter, from)},
      coalesce(${given('details', 'json')}, ${given('output', 'bytes')}), NULL`
}

/** What a retry was sent with in place of the original; PostgreSQL has looked it up with the letter. */
const inputOf = (dialect: Dialect, letter: string, from: string): string =>
  dialect === 'postgres' ? `${letter}.input` : input(dialect, from)

const input = (dialect: Dialect, from: string): string =>
  `CASE WHEN ${valueIn(dialect, from, 'is_edited', 'int')} = 1 AND edited = 1 THEN edited_payload
    ELSE ${valueIn(dialect, from, 'input', 'bytes')} END`

/** Of PostgreSQL; `after` is what is done with those that were changed. */
const changed = (act: TransitionName, returning: string, after: string): string => `
  WITH changed AS MATERIALIZED (
    UPDATE bartleby.letters SET ${assignments('postgres', act)}
    WHERE id = ANY($1::bigint[]) AND ${fromStatus(act)} RETURNING ${returning}
  )${after}
  SELECT drawer, count(*) AS letters FROM changed GROUP BY drawer`

/**
 * Rewrites letters by primary key. PostgreSQL adds a row of history for each and tells of each drawer; SQLite has a statement of its own for either.
 */
const changing = (act: TransitionName): Statement =>
  sql(`letters.${act}`, {
    postgres:
      transitionOf(act).word === null
        ? changed(act, 'drawer', '')
        : changed(
            act,
            `id, drawer, version, engine, instance_id, ${CORRELATION_ID} AS correlation_id, ${FROM.postgres} AS given,
             ${input('postgres', FROM.postgres)} AS input`,
            `, recorded AS (
               INSERT INTO bartleby.history (${RECORD})
               ${recorded('postgres', 'changed', 'changed.given', 'changed.correlation_id')} FROM changed
             )`,
          ),
    sqlite: `UPDATE letters SET ${assignments('sqlite', act)} WHERE id = $1 AND ${fromStatus(act)}`,
  })

/** How many values a statement has places for: neither store takes more. */
const placesIn = (text: string): number =>
  Math.max(...[...text.matchAll(/[?$](\d+)/g)].map(([, place]) => Number(place)))

/** The drawers of letters that an act can be done to. */
const drawersFor = (act: TransitionName): Statement =>
  sql(`letters.${act}.drawers`, {
    postgres: '',
    sqlite: `SELECT drawer, 1 AS letters FROM letters WHERE id = ANY($1) AND ${fromStatus(act)}`,
  })

function statementsOf(act: TransitionName) {
  const statement = changing(act)
  const places = { postgres: placesIn(statement.postgres), sqlite: placesIn(statement.sqlite) }
  return { changing: statement, places, drawers: drawersFor(act) }
}

/** Takes letters out by primary key. Rows: one for all that were the same. */
function removing(act: TransitionName): Statement {
  const gone = `DELETE FROM bartleby.letters WHERE id = ANY($1::bigint[]) AND ${fromStatus(act)}
    RETURNING drawer, status, CASE WHEN confirmed_at IS NULL THEN resolution END AS resolution`
  return sql(`letters.${act}`, {
    postgres: `WITH gone AS (${gone})
      SELECT drawer, status, resolution, count(*) AS letters FROM gone GROUP BY drawer, status, resolution`,
    sqlite: `${gone}, 1 AS letters`,
  })
}

/** The statements of every act but a capture, whose rows come from its source. */
export const CHANGES = {
  reopen: statementsOf('reopen'),
  intend: statementsOf('intend'),
  forgo: statementsOf('forgo'),
  retry: statementsOf('retry'),
  discard: statementsOf('discard'),
  complete: statementsOf('complete'),
  expire: statementsOf('expire'),
  restore: statementsOf('restore'),
  confirm: statementsOf('confirm'),
  refile: statementsOf('refile'),
} as const
export const REMOVALS = { erase: removing('erase'), remove: removing('remove') } as const

/** The history of letters that were just changed. */
export const recordChanged = sql('letters.record', {
  postgres: '',
  sqlite: `
    INSERT INTO history (${RECORD})
    ${recorded('sqlite', 'letters', 'asked.value', CORRELATION_ID)}
    FROM json_each($2) AS asked CROSS JOIN letters ON letters.id = CAST(asked.key AS INTEGER)`,
})

/** The failures that stand on letters go to their attempts; one look into their primary key each. */
export const keepFailures = sql(
  'letters.keepFailures',
  `INSERT INTO bartleby.letter_attempts
     (letter_id, number, failed_at, superseded_at, failed_by, error_class, error_message, error_stack, reported_count)
   SELECT id, coalesce((SELECT max(number) FROM bartleby.letter_attempts WHERE letter_id = letters.id), 0) + 1,
     last_failure_at, $2, failed_by, error_class, error_message, error_stack, reported_count
   FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
)

/** What is on file about locked letters, by primary key. */
export const removeAttempts = sql(
  'letters.removeAttempts',
  'DELETE FROM bartleby.letter_attempts WHERE letter_id = ANY($1::bigint[])',
)
export const removeTexts = sql('letters.removeTexts', {
  postgres: 'DELETE FROM bartleby.letter_texts WHERE letter_id = ANY($1::bigint[])',
  sqlite: 'DELETE FROM letter_texts WHERE rowid = ANY($1)',
})

/**
 * Waits for who files texts at the moment, and keeps others from it until the transaction ends: a text that is filed after it was
 * removed would stay for ever. Take it last, when all rows are locked: then nobody waits for who waits for it.
 */
export const keepFilingOut = sql('letters.keepFilingOut', {
  postgres: `SELECT pg_advisory_xact_lock_shared(hashtextextended('bartleby.letter_texts', 0))`,
  sqlite: '',
})
