/**
 * Statements that write letters, made from the table of transitions. Each letter brings a row of `given` (see `store/idioms.ts`);
 * instant, actor, notes and redrive are shared. A statement names only the columns of its act.
 */
import { type Statement, sql } from '../store/database.ts'
import type { GivenRow } from '../store/idioms.ts'
import { POSITION_COLUMNS } from './in-dead-queue/read.ts'
import { STATUS, STATUSES } from './letter.ts'
import { type StateColumn, type Transition, type TransitionName, transitionOf } from './transitions.ts'

const FAILURE = {
  first_failure_at: 'bigint',
  last_failure_at: 'bigint',
  reported_count: 'int',
  died_as: 'text',
  reason: 'text',
  error_class: 'text',
  error_message: 'text',
  error_stack: 'text',
  failed_by: 'text',
} as const

const NEW_POSITION = {
  stays: 'int',
  dead_queue: 'text',
  part: 'int',
  shelf: 'smallint',
  serial: 'bigint',
  laid_at: 'bigint',
} as const

const RUN = {
  run_at: 'bigint',
  run_correlation: 'text',
  run_instance: 'text',
  run_actor: 'text',
  duration_ms: 'bigint',
  error: 'text',
  input: 'bytea',
  output: 'bytea',
} as const

const GIVEN = {
  ...{ id: 'bigint', actor: 'text', details: 'text', series: 'int' },
  ...{ sent_as: 'text', sent_to: 'text', is_edited: 'int', deliveries: 'int', drawer: 'int' },
  ...FAILURE,
  ...NEW_POSITION,
  ...RUN,
} as const
type GivenColumn = keyof typeof GIVEN
export type Given = Readonly<Partial<Record<GivenColumn, GivenRow[string]>>>

/** Shared by all letters of a call. */
const SAME = { at: 'bigint', actor: 'text', notes: 'text', redrive: 'int' } as const
export type Same = Readonly<Record<keyof typeof SAME, string | number | bigint | null>>

/** A statement and its parameters behind the lists. */
interface Writing {
  readonly statement: Statement
  readonly needs: readonly (keyof typeof SAME)[]
}

const FROM_GIVEN = 'FROM unnest(…) AS given (…)'

/** Resolves `given.…` and `same.…` to lists and parameters. */
function placed(text: string): Omit<Writing, 'statement'> & { readonly text: string } {
  const namesOf = <Name extends string>(prefix: string, names: Readonly<Record<Name, string>>) =>
    // An object has the keys that its type says.
    (Object.keys(names) as Name[]).filter((name) => new RegExp(`\\b${prefix}\\.${name}\\b`).test(text))
  const given = namesOf('given', GIVEN)
  const needs = namesOf('same', SAME)
  const lists = given.map((name, i) => `$${i + 1}::${GIVEN[name]}[]`)
  const clause = () => `FROM unnest(${lists.join(', ')}) AS given (${given.join(', ')})`
  const placeOf = (_: string, name: keyof typeof SAME) =>
    `$${given.length + needs.indexOf(name) + 1}::${SAME[name]}`
  return { needs, text: text.replace(FROM_GIVEN, clause).replace(/\bsame\.(\w+)/g, placeOf) }
}

const failureColumns = (): string[] => [
  'first_failure_at = least(letters.first_failure_at, given.first_failure_at)',
  'died_as = coalesce(given.died_as, letters.died_as)',
  ...Object.keys(FAILURE)
    .filter((name) => name !== 'first_failure_at' && name !== 'died_as')
    .map((name) => `${name} = given.${name}`),
]

const positionColumns = (): string[] =>
  [...Object.entries(POSITION_COLUMNS), ['dead_queue', '']].map(([column = '', empty]) => {
    const value = column in NEW_POSITION ? `given.${column}` : empty
    return `${column} = CASE WHEN given.stays = 1 THEN letters.${column} ELSE ${value} END`
  })

function setColumn(act: TransitionName, column: StateColumn): string[] {
  switch (column) {
    case 'resolution':
      return [`resolution = '${act}'`]
    case 'resolved_at':
    case 'expired_at':
    case 'confirmed_at':
      return [`${column} = same.at`]
    case 'resolved_by':
      return ['resolved_by = coalesce(given.actor, same.actor)']
    case 'notes':
    case 'redrive':
      return [`${column} = same.${column}`]
    case 'sent_as':
    case 'sent_to':
    case 'drawer':
      return [`${column} = given.${column}`]
    case 'dequeue_count':
      return ['dequeue_count = letters.dequeue_count + coalesce(given.deliveries, 0)']
    case 'failure':
      return failureColumns()
    case 'position':
      return positionColumns()
  }
}

const resetColumn = (column: StateColumn): string[] =>
  column === 'position'
    ? Object.entries(POSITION_COLUMNS).map(([name, empty]) => `${name} = ${empty}`)
    : [`${column} = NULL`]

/** Column assignments of an act, without its status. */
function assignments(act: TransitionName): string {
  const { sets, resets, word }: Transition = transitionOf(act)
  const version = word === null ? [] : ['version = letters.version + 1']
  const written = sets.flatMap((column) => setColumn(act, column))
  return [...version, ...written, ...resets.flatMap(resetColumn)].join(', ')
}

/** null: every status allows it. */
function allowed(act: TransitionName): string | null {
  const from = transitionOf(act).from.map((status) => STATUS[status])
  return from.length === STATUSES.length ? null : `letters.status IN (${from.join(', ')})`
}

/**
 * Letters by primary key. PostgreSQL gets the ids as a condition too: without statistics, the join alone reads all letters to change
 * a thousand. A forbidden status becomes NULL on PostgreSQL, which fails (as a condition it would offer another index), and a missing
 * row on SQLite, which writes the indexes of every named column.
 */
function changing(act: TransitionName): { readonly postgres: string; readonly sqlite: string } {
  const { to } = transitionOf(act)
  const isAllowed = allowed(act)
  const status = to === null || to === 'removed' ? 'letters.status' : `${STATUS[to]}`
  const stays = status === 'letters.status'
  const written = (first: string[], condition: string) =>
    `UPDATE bartleby.letters SET ${[...first, assignments(act)].join(', ')} ${FROM_GIVEN}
     WHERE letters.id = given.id${condition}`
  const checked = isAllowed === null ? status : `CASE WHEN ${isAllowed} THEN ${status} END`
  return {
    postgres: written(
      stays && isAllowed === null ? [] : [`status = ${checked}`],
      ' AND letters.id = ANY($1::bigint[])',
    ),
    sqlite: written(stays ? [] : [`status = ${status}`], isAllowed === null ? '' : ` AND ${isAllowed}`),
  }
}

const RECORD = `created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id, actor, notes, error,
  input, output, short_key`

const RUN_ACTS: readonly TransitionName[] = ['reopen', 'complete', 'discard', 'confirm']

function recorded(act: TransitionName): string {
  const isRun = RUN_ACTS.includes(act)
  const run = (name: keyof typeof RUN) => (isRun ? `given.${name}` : 'NULL')
  const edit = 'CASE WHEN given.is_edited = 1 AND changed.edited = 1 THEN changed.edited_payload END'
  return `SELECT coalesce(${run('run_at')}, same.at), coalesce(${run('duration_ms')}, 0), changed.id, given.series, changed.version,
      coalesce(${run('run_correlation')}, changed.correlation_id, changed.source_id),
      CASE WHEN ${run('run_correlation')} IS NULL THEN changed.instance_id ELSE ${run('run_instance')} END,
      coalesce(${run('run_actor')}, given.actor, same.actor), same.notes, ${run('error')},
      ${act === 'retry' ? edit : run('input')}, coalesce(convert_to(given.details, 'UTF8'), ${run('output')}), NULL`
}

const CHANGED = ['id', 'drawer', 'version', 'instance_id', 'correlation_id', 'source_id']
const EDITED = ['edited', 'edited_payload']

/** Writes letters and history; returns the number per drawer. */
function changingAll(act: TransitionName): string {
  const written = changing(act).postgres
  const groups = 'SELECT drawer, count(*) AS letters FROM changed GROUP BY drawer'
  if (transitionOf(act).word === null)
    return `WITH changed AS (${written} RETURNING letters.drawer) ${groups}`
  const record = recorded(act)
  const names = new Set([...record.matchAll(/\bgiven\.(\w+)/g)].map(([, name]) => name))
  const returned = [
    ...[...CHANGED, ...(act === 'retry' ? EDITED : [])].map((name) => `letters.${name}`),
    ...[...names].map((name) => `given.${name} AS given_${name}`),
  ]
  return `
    WITH changed AS (${written} RETURNING ${returned.join(', ')}),
    recorded AS (
      INSERT INTO bartleby.history (${RECORD})
      ${record.replaceAll('given.', 'changed.given_')} FROM changed
    )
    ${groups}`
}

/** SQLite: drawers of letters that allow the act. RETURNING took twice as long. */
const drawersFor = (act: TransitionName): Statement => {
  const isAllowed = allowed(act)
  return sql(`letters.${act}.drawers`, {
    sqlite: `SELECT drawer FROM letters WHERE id = ANY($1)${isAllowed === null ? '' : ` AND ${isAllowed}`}`,
  })
}

/** SQLite: history of a letter that was just changed. */
const recordingOne = (act: TransitionName): string => `
  INSERT INTO history (${RECORD})
  ${recorded(act)} ${FROM_GIVEN}, letters AS changed WHERE changed.id = given.id`

interface Changing {
  readonly postgres: Writing
  /** The steps of PostgreSQL's statement, in order. */
  readonly sqlite: { readonly drawers: Statement; readonly writings: readonly Writing[] }
}

function changesOf(act: TransitionName): Changing {
  const [all, one, record] = [
    placed(changingAll(act)),
    placed(changing(act).sqlite),
    placed(recordingOne(act)),
  ]
  const statement = sql(`letters.${act}`, { postgres: all.text, sqlite: one.text })
  const writings = [{ statement, needs: one.needs }]
  if (transitionOf(act).word !== null) {
    const history = sql(`letters.${act}.record`, { sqlite: record.text })
    writings.push({ statement: history, needs: record.needs })
  }
  return {
    postgres: { statement, needs: all.needs },
    sqlite: { drawers: drawersFor(act), writings },
  }
}

/** Every act but the capture, whose rows come from its source. */
export const CHANGES = {
  reopen: changesOf('reopen'),
  intend: changesOf('intend'),
  forgo: changesOf('forgo'),
  retry: changesOf('retry'),
  discard: changesOf('discard'),
  complete: changesOf('complete'),
  expire: changesOf('expire'),
  restore: changesOf('restore'),
  confirm: changesOf('confirm'),
  refile: changesOf('refile'),
} as const

/** Deletes letters by primary key; returns their former state. */
const removing = (act: TransitionName): Statement =>
  sql(
    `letters.${act}`,
    `DELETE FROM bartleby.letters WHERE id = ANY($1::bigint[])
     RETURNING drawer, status, CASE WHEN confirmed_at IS NULL THEN resolution END AS resolution`,
  )
export const REMOVALS = { erase: removing('erase'), remove: removing('remove') } as const

/** Moves current failures to the attempts; one look into their primary key each. */
export const keepFailures = sql(
  'letters.keepFailures',
  `INSERT INTO bartleby.letter_attempts
     (letter_id, number, failed_at, superseded_at, failed_by, error_class, error_message, error_stack, reported_count)
   SELECT id, coalesce((SELECT max(number) FROM bartleby.letter_attempts WHERE letter_id = letters.id), 0) + 1,
     last_failure_at, $2, failed_by, error_class, error_message, error_stack, reported_count
   FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
)

/** By primary key. */
export const removeAttempts = sql(
  'letters.removeAttempts',
  'DELETE FROM bartleby.letter_attempts WHERE letter_id = ANY($1::bigint[])',
)
export const removeTexts = sql('letters.removeTexts', {
  postgres: 'DELETE FROM bartleby.letter_texts WHERE letter_id = ANY($1::bigint[])',
  sqlite: 'DELETE FROM letter_texts WHERE rowid = ANY($1)',
})

/**
 * Keeps searchable texts from being filed until the transaction ends: a text filed after its removal would stay for ever. Take it
 * last, when all rows are locked, so that no wait becomes a deadlock.
 */
export const keepFilingOut = sql(
  'letters.keepFilingOut',
  `SELECT pg_advisory_xact_lock_shared(hashtextextended('bartleby.letter_texts', 0))`,
)
