/** What the store knows of entities: which were taken in, whose letters they are, what is being done with them, and what is not yet written. */
import { type Instant, instant } from '../../core/clock.ts'
import { storable } from '../../core/content.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Session, sql, type Transaction } from '../../store/database.ts'
import { runGiven } from '../../store/idioms.ts'
import { at, flag, integer, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { type EntityKey, sourceIdOf } from './entity.ts'
import { STATE, type State } from './schema.ts'
import { MOST_COUNTED } from './shapes.ts'

// The store holds nothing else.
const stateOf = (value: number | bigint | string): State => Number(value) as State

const ENTITY = rowShape({
  sourceId: text,
  letterId,
  writtenAt: at,
  sentAt: orNull(at),
  leaseUntil: orNull(at),
  isCurrent: flag,
  state: stateOf,
  engine: text,
  queue: orNull(text),
  correlationId: text,
  partitionKey: orNull(text),
  rowKey: orNull(text),
  etag: orNull(text),
  claim: orNull(text),
})
export type EntityRow = RowOf<typeof ENTITY>

const ENTITIES = 'bartleby.azure_entities'

const select = (name: string, where: string, from = ENTITIES) =>
  sql(`azure.${name}`, `SELECT ${ENTITY.columns} FROM ${from} WHERE ${where}`, { bigints: true })

/** By primary key. */
const readThese = select('readEntities', 'source_id = ANY($1::text[])')
/** One each, on azure_entity_of_letter. */
const readCurrent = select('readCurrent', 'letter_id = ANY($1::bigint[]) AND is_current = 1')
/** By azure_sent: what was sent with these correlation ids. Current is said as no index says it: PostgreSQL would read all of azure_entity_of_letter beside it. */
const readSent = select(
  'readSent',
  `correlation_id = ANY($1::text[]) AND state IN (${STATE.uncertain}, ${STATE.sent}) AND is_current <> 0`,
)
/** All of azure_held, which has nothing but what is under way; every id is behind the empty one. */
const readHeld = select(
  'readHeld',
  `state IN (${STATE.claimed}, ${STATE.sending}) AND source_id > '' ORDER BY source_id`,
  `${ENTITIES} INDEXED BY azure_held`,
)

const insertRows = sql(
  'azure.insertEntities',
  `INSERT INTO bartleby.azure_entities (source_id, letter_id, written_at, is_current, state, engine, queue, correlation_id, partition_key, row_key, etag)
   SELECT given.source_id, given.letter_id, given.written_at, 1, ${STATE.resting}, given.engine, given.queue, given.correlation_id, given.partition_key, given.row_key, given.etag
   FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[]) AS given (source_id, letter_id, written_at, engine, queue, correlation_id, partition_key, row_key, etag)`,
)
const supersede = sql(
  'azure.supersede',
  `UPDATE bartleby.azure_entities SET is_current = 0, state = ${STATE.resting}, claim = NULL, lease_until = NULL
   WHERE letter_id = ANY($1::bigint[]) AND is_current = 1`,
)
const writeState = sql(
  'azure.writeState',
  'UPDATE bartleby.azure_entities SET state = $2, claim = $3, lease_until = $4, sent_at = $5 WHERE source_id = $1',
)
const writeStamp = sql(
  'azure.writeStamp',
  'UPDATE bartleby.azure_entities SET etag = $2, written_at = $3 WHERE source_id = $1',
)
const moveRow = sql(
  'azure.moveEntity',
  `UPDATE bartleby.azure_entities SET letter_id = $2, is_current = 1, state = ${STATE.resting}, claim = NULL, lease_until = NULL, sent_at = NULL
   WHERE source_id = $1`,
)
const restStates = sql(
  'azure.rest',
  `UPDATE bartleby.azure_entities SET state = ${STATE.resting}, claim = NULL, lease_until = NULL, sent_at = NULL
   WHERE letter_id = ANY($1::bigint[]) AND is_current = 1`,
)

const many = async (
  session: Session,
  statement: typeof readThese,
  ...values: Parameters<Session['rows']>[1][]
) => (await session.rows<object>(statement, ...values)).map(ENTITY.read)

export const entitiesNamed = async (
  session: Session,
  sourceIds: readonly string[],
): Promise<ReadonlyMap<string, EntityRow>> =>
  new Map((await many(session, readThese, sourceIds)).map((row) => [row.sourceId, row]))

/** The current entities of letters. */
export const entitiesOf = async (
  session: Session,
  letters: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, EntityRow>> =>
  new Map((await many(session, readCurrent, letters)).map((row) => [row.letterId, row]))

/** What was sent with a correlation id, of an engine. */
export type SentOf = (correlationId: string, engine: string) => readonly EntityRow[]

export async function sentWith(session: Session, correlationIds: readonly string[]): Promise<SentOf> {
  const nameOf = (correlationId: string, engine: string) => `${engine} ${correlationId}`
  const rows = correlationIds.length === 0 ? [] : await many(session, readSent, [...new Set(correlationIds)])
  const found = Map.groupBy(rows, ({ correlationId, engine }) => nameOf(correlationId, engine))
  return (correlationId, engine) => found.get(nameOf(correlationId, engine)) ?? []
}

export const heldEntities = (session: Session): Promise<EntityRow[]> => many(session, readHeld)

export type NewEntity = Pick<
  EntityRow,
  | 'sourceId'
  | 'letterId'
  | 'writtenAt'
  | 'engine'
  | 'queue'
  | 'correlationId'
  | 'partitionKey'
  | 'rowKey'
  | 'etag'
>

/** Entities of letters that are new, or that died again: what was current of those is not any more. */
export async function registerEntities(tx: Transaction, entities: readonly NewEntity[]): Promise<void> {
  if (entities.length === 0) return
  await tx.run(
    supersede,
    entities.map(({ letterId }) => letterId),
  )
  await runGiven(
    tx,
    insertRows,
    entities.map((entity) => ({
      ...{ source_id: entity.sourceId, letter_id: entity.letterId, written_at: entity.writtenAt },
      ...{ engine: entity.engine, queue: entity.queue, correlation_id: entity.correlationId },
      ...{ partition_key: entity.partitionKey, row_key: entity.rowKey, etag: entity.etag },
    })),
  )
}

/** An entity whose letter was removed has another one. */
export async function moveEntity(tx: Transaction, sourceId: string, letter: LetterId): Promise<void> {
  await tx.run(moveRow, sourceId, letter)
}

export interface Held {
  readonly state: State
  readonly claim?: string | null
  readonly leaseUntil?: Instant | null
  readonly sentAt?: Instant | null
}

export async function putState(tx: Transaction, sourceId: string, held: Held): Promise<void> {
  await tx.run(
    writeState,
    sourceId,
    held.state,
    held.claim ?? null,
    held.leaseUntil ?? null,
    held.sentAt ?? null,
  )
}

/** Nothing is done with the messages of these letters. */
export async function putAtRest(tx: Transaction, letters: readonly LetterId[]): Promise<void> {
  await tx.run(restStates, letters)
}

export async function putStamp(
  tx: Session,
  sourceId: string,
  { etag, writtenAt }: { readonly etag: string; readonly writtenAt: Instant },
): Promise<void> {
  await tx.run(writeStamp, sourceId, etag, writtenAt)
}

const WRITE = rowShape({
  sourceId: text,
  letterId,
  actedAt: at,
  dueAt: at,
  attempts: integer,
  trouble: orNull(text),
})
export type PendingWrite = RowOf<typeof WRITE>

const putWrites = sql(
  'azure.putWrites',
  `INSERT INTO bartleby.azure_writes (source_id, letter_id, acted_at, due_at, attempts)
   SELECT source_id, letter_id, $2, $2, 0 FROM bartleby.azure_entities
   WHERE letter_id = ANY($1::bigint[]) AND is_current = 1 AND row_key IS NOT NULL
   ON CONFLICT (source_id) DO UPDATE SET acted_at = excluded.acted_at, due_at = excluded.due_at, attempts = 0`,
)
const readDue = sql(
  'azure.dueWrites',
  `SELECT ${WRITE.columns} FROM bartleby.azure_writes WHERE due_at <= $1 ORDER BY due_at LIMIT $2`,
  { bigints: true },
)
const readWrites = sql(
  'azure.writesOf',
  `SELECT ${WRITE.columns} FROM bartleby.azure_writes WHERE source_id = ANY($1::text[])`,
  { bigints: true },
)
const dropWrite = sql(
  'azure.dropWrite',
  'DELETE FROM bartleby.azure_writes WHERE source_id = $1 AND acted_at = $2',
)
const dropWritesOf = sql(
  'azure.dropWrites',
  'DELETE FROM bartleby.azure_writes WHERE letter_id = ANY($1::bigint[])',
)
const postpone = sql(
  'azure.postponeWrite',
  'UPDATE bartleby.azure_writes SET attempts = attempts + 1, due_at = $3, trouble = $4 WHERE source_id = $1 AND acted_at = $2',
)

/** Notes that the current entities of letters have to say what the letters do. */
export async function noteUnwritten(
  tx: Transaction,
  letters: readonly LetterId[],
  now: Instant,
): Promise<void> {
  await tx.run(putWrites, letters, now)
}

export const dueWrites = async (session: Session, now: Instant, most: number): Promise<PendingWrite[]> =>
  (await session.rows<object>(readDue, now, most)).map(WRITE.read)

export const writeOf = async (session: Session, sourceId: string): Promise<PendingWrite | null> => {
  const [row] = await session.rows<object>(readWrites, [sourceId])
  return row === undefined ? null : WRITE.read(row)
}

/** It is written, or not to be: unless something was done to the letter since. */
export async function endWrite(
  session: Session,
  { sourceId, actedAt }: Pick<PendingWrite, 'sourceId' | 'actedAt'>,
): Promise<void> {
  await session.run(dropWrite, sourceId, actedAt)
}

export async function forgetWrites(tx: Transaction, letters: readonly LetterId[]): Promise<void> {
  await tx.run(dropWritesOf, letters)
}

export async function postponeWrite(
  session: Session,
  { sourceId, actedAt }: PendingWrite,
  until: Instant,
  trouble: string,
): Promise<void> {
  await session.run(postpone, sourceId, actedAt, until, storable(trouble, 500))
}

const COUNTS = rowShape({ unwritten: integer, oldest: orNull(at), uncertain: integer })
export type Standing = RowOf<typeof COUNTS>

/** By azure_writes_oldest and azure_uncertain, and no further than is counted: an account may be away for days, and health is asked for often. */
const countOpen = sql(
  'azure.standing',
  `SELECT
     (SELECT count(*) FROM (SELECT 1 FROM bartleby.azure_writes WHERE acted_at >= 0 ORDER BY acted_at LIMIT ${MOST_COUNTED}) AS unwritten)
       AS unwritten,
     (SELECT acted_at FROM bartleby.azure_writes WHERE acted_at >= 0 ORDER BY acted_at LIMIT 1) AS oldest,
     (SELECT count(*) FROM (SELECT 1 FROM ${ENTITIES} INDEXED BY azure_uncertain
        WHERE state = ${STATE.uncertain} AND source_id > '' ORDER BY source_id LIMIT ${MOST_COUNTED}) AS uncertain) AS uncertain`,
  { bigints: true },
)

export async function standingOf(session: Session): Promise<Standing> {
  const [row] = await session.rows<object>(countOpen)
  if (row === undefined) throw new Error('nothing was counted')
  return COUNTS.read(row)
}

const readMark = sql('azure.readMark', 'SELECT read_to FROM bartleby.azure_marks WHERE name = $1', {
  bigints: true,
})
const writeMark = sql(
  'azure.writeMark',
  `INSERT INTO bartleby.azure_marks AS mark (name, read_to) VALUES ($1, $2)
   ON CONFLICT (name) DO UPDATE SET read_to = excluded.read_to WHERE mark.read_to < excluded.read_to`,
)

/** In the order of the primary key; there are two for each account that was ever read. */
const readTables = sql(
  'azure.tables',
  `SELECT name FROM bartleby.azure_marks WHERE name > '' ORDER BY name LIMIT 50`,
)

/**
 * The letter of an entity, in the table that is configured or in any that was read before: letters are called by their RowKey also where
 * the account is gone from the configuration. Those of partitions that are no engine have a row key of the office.
 */
export async function letterOfKey(
  session: Session,
  table: string | null,
  key: EntityKey,
): Promise<LetterId | null> {
  // No text of the store has one.
  if (`${key.partitionKey}${key.rowKey}`.includes('\0')) return null
  const read = (await session.rows<{ name: string }>(readTables)).map(({ name }) => name)
  const tables = new Set(table === null ? read : [table, ...read])
  if (tables.size === 0) return null
  const found = await entitiesNamed(
    session,
    [...tables].map((name) => sourceIdOf(name, key)),
  )
  return found.values().next().value?.letterId ?? null
}

/** How far a table was read; null before the first time. */
export async function markOfTable(session: Session, name: string): Promise<Instant | null> {
  const [row] = await session.rows<{ read_to: bigint }>(readMark, name)
  return row === undefined ? null : instant(BigInt(row.read_to))
}

export async function putMark(session: Session, name: string, readTo: Instant): Promise<void> {
  await session.run(writeMark, name, readTo)
}
