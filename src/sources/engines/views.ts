/**
 * The unified tables as SQL views, for people who query with SQL: letters under the name of the DLQ table, history
 * under that of the history table, with the columns of the tables they stand for. Rows say what the API says. Two
 * differences: bytes with U+0000 in them are in base64 although they may be UTF-8, and two columns beside a message
 * say whether it is text.
 */

import { PLAIN_ENGINE } from '../../history/plain-capture.ts'
import { HISTORY_STATUSES } from '../../history/shapes.ts'
import { sourceKinds } from '../../letters/kinds.ts'
import { STATUSES } from '../../letters/letter.ts'
import { type Database, type Dialect, type Session, sql, type Transaction } from '../../store/database.ts'
import { VIEW_TEXT, type ViewText } from './text-sql.ts'

export interface ViewNames {
  readonly dlqTableName: string
  readonly historyTableName: string
}

/** `key` is the configuration key that names the view. */
interface View {
  readonly key: string
  readonly name: string
  readonly query: string
}

const TABLE_NAME = /^[A-Za-z][A-Za-z0-9]{2,62}$/

/** For servers that start together; SQLite has its writer lock. */
const VIEW_LOCK = 'SELECT pg_advisory_xact_lock(1853002)'

/** What has the name now, and our note on it. */
const readRelation = sql('views.read', {
  postgres: `SELECT relkind = 'v' AS is_view, obj_description(pg_class.oid, 'pg_class') AS note
             FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
             WHERE nspname = 'bartleby' AND relname = $1`,
  sqlite: `SELECT type = 'view' AS is_view, sql AS note FROM sqlite_schema WHERE name = $1 COLLATE NOCASE`,
})

/** Creates or replaces the views. Current ones are not touched: replacing one waits for everybody who reads it. */
export async function createEngineViews(db: Database, names: ViewNames): Promise<void> {
  const text = VIEW_TEXT[db.dialect]
  const views: readonly View[] = [
    { key: 'dlqTableName', name: names.dlqTableName, query: dlqQuery(text) },
    { key: 'historyTableName', name: names.historyTableName, query: historyQuery(text) },
  ]
  for (const { key, name } of views) {
    if (!TABLE_NAME.test(name)) throw new TypeError(`engines.tables.${key}: '${name}' is no name of a table`)
  }
  if (await areCurrent(db, views)) return
  await db.transaction('views.create', async (tx) => {
    if (db.dialect === 'postgres') await db.script(tx, VIEW_LOCK)
    for (const view of views) await createView(db, tx, view)
  })
}

const areCurrent = (db: Database, views: readonly View[]): Promise<boolean> =>
  db.session('views.read', async (session) => {
    for (const view of views) {
      if ((await stateOf(session, view)) !== 'current') return false
    }
    return true
  })

async function stateOf(session: Session, view: View): Promise<'missing' | 'old' | 'current'> {
  const [found] = await session.rows<{ is_view: boolean | number; note: string | null }>(
    readRelation,
    view.name,
  )
  if (found === undefined) return 'missing'
  if (!found.is_view) {
    throw new TypeError(
      `engines.tables.${view.key}: '${view.name}' is the name of one of Bartleby's own tables`,
    )
  }
  return found.note === noteOf(session.dialect, view) ? 'current' : 'old'
}

async function createView(db: Database, tx: Transaction, view: View): Promise<void> {
  const state = await stateOf(tx, view)
  if (state === 'current') return
  if (tx.dialect === 'sqlite') {
    await db.script(tx, `DROP VIEW IF EXISTS "${view.name}"; ${noteOf('sqlite', view)}`)
    return
  }
  // Replaced, not dropped: rights on it stay.
  await db.script(
    tx,
    `CREATE OR REPLACE VIEW bartleby."${view.name}" AS ${view.query};
     COMMENT ON VIEW bartleby."${view.name}" IS '${noteOf('postgres', view)}'`,
  )
}

/** Identifies a version of a view: SQLite keeps the statement itself, PostgreSQL a comment. */
const noteOf = (dialect: Dialect, { name, query }: View): string =>
  dialect === 'sqlite'
    ? `CREATE VIEW "${name}" AS ${query}`
    : `Made by Bartleby, version ${versionOf(query)}.`

/** FNV-1a: a short fingerprint; nobody attacks it. */
function versionOf(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

const statusWord = (column: string, words: readonly string[]): string =>
  `CASE ${column} ${words.map((word, i) => `WHEN ${i} THEN '${word}'`).join(' ')} END`

const encodingOf = (text: ViewText, bytes: string): string =>
  `CASE WHEN ${bytes} IS NULL THEN NULL WHEN ${text.isText(bytes)} THEN 'utf8' ELSE 'base64' END`

const timeOf = (text: ViewText, at: string): string => `${text.time(at)} || 'Z'`

/** Encodes the name only where something has to be encoded. */
const rowKeyOf = (text: ViewText, name: string, table: string, column: string): string =>
  `CASE WHEN ${text.hasEncoded(name)} THEN ${text.encoded(name)} ELSE ${name} END || '-' || ${text.keyTime(`${table}.${column}`)} || CASE WHEN ${table}.short_key IS NULL THEN ${text.keyNumber(`${table}.id`)} ELSE '' END || 'Z'`

/** Whether a letter has the row key that it has where it came from, by the rules of `keptRowKey`. */
function keepsRowKey(rowKey: string): string {
  const sources = sourceKinds().filter(({ keepsRowKeys }) => keepsRowKeys === true)
  const named = sources.map(({ name }) => `drawers.source = '${name.replaceAll("'", "''")}'`)
  const end = `'/' || letters.engine || '/' || ${rowKey}`
  return `(${named.join(' OR ') || '1 = 0'}) AND ${rowKey} NOT IN ('', '.', '..')
        AND length(letters.source_id) - length(replace(letters.source_id, '/', '')) = 3
        AND substr(letters.source_id, length(letters.source_id) - length(${end}) + 1) = ${end}`
}

function dlqQuery(text: ViewText): string {
  const instance = 'coalesce(letters.instance_id, letters.source_id)'
  const kept = text.lastPart('letters.source_id')
  // An empty payload is stored as NULL.
  const payload = `coalesce(letters.payload, ${text.noBytes})`
  return `
    SELECT letters.engine AS "PartitionKey",
      CASE WHEN ${keepsRowKey(kept)} THEN ${kept}
        ELSE ${rowKeyOf(text, instance, 'letters', 'captured_at')} END AS "RowKey",
      letters.engine AS "Engine",
      ${instance} AS "InstanceId",
      nullif(drawers.queue, '') AS "OriginalQueue",
      ${text.asText(payload)} AS "OriginalMessage",
      letters.error_message AS "ErrorMessage",
      letters.dequeue_count AS "DequeueCount",
      ${timeOf(text, 'letters.first_failure_at')} AS "FirstFailureAtUtc",
      ${timeOf(text, 'letters.last_failure_at')} AS "LastFailureAtUtc",
      ${statusWord('letters.status', STATUSES)} AS "Status",
      letters.notes AS "ResolutionNotes",
      ${timeOf(text, 'letters.resolved_at')} AS "ResolvedAtUtc",
      letters.resolved_by AS "ResolvedBy",
      coalesce(letters.correlation_id, letters.source_id) AS "CorrelationId",
      ${encodingOf(text, payload)} AS "OriginalMessageEncoding"
    FROM ${text.schema}letters AS letters
    JOIN ${text.schema}drawers AS drawers ON drawers.id = letters.drawer`
}

/** Captures of plain queues have their letter's id. Apart, so that each half finds a correlation id by its own index. */
function historyQuery(text: ViewText): string {
  return `${historyRows(text, 'history.correlation_id')} WHERE history.correlation_id IS NOT NULL
    UNION ALL ${historyRows(text, 'letters.source_id')}
    LEFT JOIN ${text.schema}letters AS letters ON letters.id = history.letter_id AND letters.captured_at = history.created_at
      AND letters.engine = '${PLAIN_ENGINE}'
    WHERE history.correlation_id IS NULL`
}

function historyRows(text: ViewText, correlationId: string): string {
  return `
    SELECT series.engine AS "PartitionKey",
      ${rowKeyOf(text, `coalesce(${correlationId}, '')`, 'history', 'created_at')} AS "RowKey",
      series.engine AS "Engine",
      coalesce(history.instance_id, ${correlationId}) AS "InstanceId",
      series.operation AS "Operation",
      ${statusWord('series.status', HISTORY_STATUSES)} AS "Status",
      history.duration_ms AS "DurationMs",
      ${text.asText('history.input')} AS "Input",
      ${text.asText('history.output')} AS "Output",
      history.error AS "Error",
      ${timeOf(text, 'history.created_at')} AS "CreatedAtUtc",
      ${correlationId} AS "CorrelationId",
      ${encodingOf(text, 'history.input')} AS "InputEncoding",
      ${encodingOf(text, 'history.output')} AS "OutputEncoding"
    FROM ${text.schema}history AS history
    JOIN ${text.schema}history_series AS series ON series.id = history.series`
}
