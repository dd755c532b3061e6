/**
 * Walks over large tables in steps of bounded size, along an index. A step is a range of keys, found first, so that
 * what is asked about it can be added up by the store and never travels.
 */
import { type Integer, type Session, type Statement, sql, type Value } from '../db/database.ts'
import { WEBHOOKS } from '../webhooks/webhook.ts'
import type { Audit, Finding, FoundRow } from './invariant.ts'

/** Rows of one step: an answer within milliseconds, a few hundred steps for a million. */
export const STEP = 5_000

/** What a walk needs of an audit. */
export type Walker = Pick<Audit, 'session' | 'looked'>

/** Reads numbers of 64 bits exactly. One text for both stores, or one for each. */
export const read = (name: string, text: Parameters<typeof sql>[1]): Statement =>
  sql(`verify.${name}`, text, { bigints: true })

/** The way over a table: where it begins, and the statement that ends a step behind `$1`. */
interface Way {
  readonly first: Value
  readonly step: Statement
}

const along = (name: string, table: string, key: string, first: Value, condition = '', order = ''): Way => ({
  first,
  step: read(
    name,
    `SELECT max(${key}) AS through, count(*) AS found
     FROM (SELECT ${key} FROM bartleby.${table} WHERE ${condition}${key} > $1 ORDER BY ${order}${key} LIMIT ${STEP}) AS step`,
  ),
})

/** Before every key that is a number, and before every text. */
const FIRST_NUMBER = -(2n ** 63n)
const FIRST_TEXT = ''

/** Letters by their primary key. */
export const LETTERS = along('letterStep', 'letters', 'id', FIRST_NUMBER)
/** Items with a case, on its partial index. */
export const CASES = along('caseStep', 'items', 'case_id', FIRST_NUMBER)
/** Earlier failures by their primary key; a step ends with all rows of its last letter. */
export const ATTEMPTS = along('attemptStep', 'letter_attempts', 'letter_id', FIRST_NUMBER)
/** Rows of history that concern a letter, but for captures of plain queues, on their partial index; a step ends with all of its last letter. */
export const HISTORY = along(
  'historyStep',
  'history',
  'letter_id',
  FIRST_NUMBER,
  'correlation_id IS NOT NULL AND ',
)
/** The captures of plain queues, which are the series `$2`, by their time; a step ends with all rows of its last microsecond. */
export const PLAIN_CAPTURES = along('seriesStep', 'history', 'created_at', FIRST_NUMBER, 'series = $2 AND ')
/** Events of Kafka by the numbers of their letters. */
export const EVENTS = along('kafkaEventStep', 'kafka_events', 'letter_id', FIRST_NUMBER)
/** What was sent to Kafka, by letters; a step ends with all sends of its last letter. */
export const SENDS = along('kafkaSendStep', 'kafka_sends', 'letter_id', FIRST_NUMBER)
/** Records of partition `$3` of the topic `$2` by their offsets; a step ends with all records of its last offset. */
export const RECORDS = along(
  'kafkaRecordStep',
  'kafka_records',
  'record_offset',
  FIRST_NUMBER,
  'topic = $2 AND partition = $3 AND ',
  'topic, partition, ',
)
/** Webhook jobs by their primary key. */
export const JOBS = along('jobStep', 'webhook_jobs', 'id', FIRST_TEXT)
/** Webhook messages by their primary key. */
export const MESSAGES = along('messageStep', 'webhook_messages', 'id', FIRST_TEXT)
/** Letters of webhook jobs by the ids of these, on their unique index. */
export const JOB_LETTERS = along(
  'jobLetterStep',
  'letters',
  'source_id',
  FIRST_TEXT,
  `engine = '${WEBHOOKS}' AND `,
)

/** Keys above `after`, up to and with `through`. */
type KeyRange = readonly [after: Value, through: Value]

/** The ranges of a way; `of` is what it is narrowed to. */
async function* ranges({ session, looked }: Walker, { first, step }: Way, of: readonly Value[]) {
  for (let after = first; ; ) {
    const [end] = await session.rows<{ through: Value; found: Value }>(step, after, ...of)
    if (end === undefined || end.through === null) return
    const range: KeyRange = [after, end.through]
    yield range
    await looked(Number(end.found))
    after = end.through
  }
}

/** All rows that `statement` has of the ranges of a way: `$1` and `$2` are the range, the others what the way is narrowed to. */
export async function* rowsAlong<Row>(
  walker: Walker,
  way: Way,
  statement: Statement,
  ...of: readonly Value[]
): AsyncGenerator<Row> {
  for await (const range of ranges(walker, way, of))
    yield* await walker.session.rows<Row>(statement, ...range, ...of)
}

/** What is wrong with a row that was read, which is then shown as it is; or whatever else is to be shown. */
type Said = string | Finding | readonly Finding[]

/** What must not be in a range of keys. */
export interface Fault {
  readonly statement: Statement
  say(row: FoundRow, audit: Audit): Said
  /** What it has to know beside the range, and beside what the way is narrowed to. */
  readonly of: (audit: Audit) => readonly Value[]
}

/** A fault that a statement finds; `Row` is a promise about what it selects. */
export const fault = <Row extends FoundRow>(
  name: string,
  text: Parameters<typeof sql>[1],
  say: (row: Row, audit: Audit) => Said,
  of: Fault['of'] = () => [],
): Fault => ({ statement: read(name, text), say, of })

/** Looks for faults on one walk over a table. */
export async function* faultsAlong(
  audit: Audit,
  way: Way,
  faults: readonly Fault[],
  ...of: readonly Value[]
): AsyncGenerator<Finding> {
  for await (const range of ranges(audit, way, of)) {
    for (const { statement, say, of: more } of faults) {
      for (const row of await audit.session.rows<FoundRow>(statement, ...range, ...of, ...more(audit))) {
        const said = say(row, audit)
        yield* typeof said === 'string' ? [{ what: said, row }] : [said].flat()
      }
    }
  }
}

/** The rows of `statement`, page by page: its first parameters are the key of the row behind which a page begins. */
export async function* pages<Row>(
  session: Session,
  statement: Statement,
  first: readonly Value[],
  keyOf: (row: Row) => readonly Value[],
  ...of: readonly Value[]
): AsyncGenerator<readonly Row[]> {
  for (let after = first; ; ) {
    const rows = await session.rows<Row>(statement, ...after, ...of)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = keyOf(last)
  }
}

/** Items of one step, on one shelf of one part. */
export interface ItemGroup {
  readonly part: Integer
  readonly shelf: Integer
  readonly found: Integer
  /** The highest serial of the group. */
  readonly last: Integer
}

/** Groups of all items by part, shelf and `by`: `columns` are what a group needs of an item, `group` what it says. The last of a step ends it. */
export const itemGroups = (name: string, columns: string, group: string, by = ''): Statement =>
  read(name, {
    // The primary key.
    postgres: `SELECT part, shelf, ${group} FROM (SELECT part, shelf, id${columns} FROM bartleby.items
        WHERE (part, shelf, id) > ($1::int, $2::smallint, $3::bigint) ORDER BY part, shelf, id LIMIT ${STEP}) AS step
      GROUP BY part, shelf${by} ORDER BY part, shelf, last`,
    // The row id.
    sqlite: `SELECT part, shelf, ${group} FROM (SELECT part, shelf, id${columns} FROM items
        WHERE id > $3 ORDER BY id LIMIT ${STEP}) GROUP BY part, shelf${by} ORDER BY last`,
  })

/** Runs a statement of `itemGroups` from the first item to the last, step by step. */
export async function* itemSteps<Group extends ItemGroup>(
  { session, looked }: Walker,
  statement: Statement,
): AsyncGenerator<readonly Group[]> {
  const keyOf = ({ part, shelf, last }: Group): readonly Value[] => [part, shelf, last]
  for await (const groups of pages<Group>(session, statement, [0, -1, -1], keyOf)) {
    yield groups
    await looked(groups.reduce((sum, { found }) => sum + Number(found), 0))
  }
}
