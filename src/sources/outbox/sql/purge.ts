/**
 * Removes processed rows past their time; their keys stay, so that an old message is not let in again. A writer that
 * looks for a key just when row and key change places might see neither, so keys are recorded first, and rows go a
 * minute later, when every statement that could not see the key has ended.
 */
import type { Instant } from '../../../core/clock.ts'
import { digestIn } from '../../../letters/contents.ts'
import type { Database, Integer, Transaction } from '../../../store/database.ts'
import { asText, type Layout } from '../table/layout.ts'
import { idList, inIdList } from './by-id.ts'

export interface Cutoffs {
  readonly now: Instant
  readonly processedBefore: Instant
  /** Null: keys are not recorded at all. */
  readonly recordedBefore: Instant | null
}

export interface Purged {
  readonly rows: number
  readonly keys: number
}

const BATCH = 1_000
const KEY_LEAD_US = 60_000_000n

interface OldRow {
  readonly id: string | bigint
  readonly processed: string | bigint
  readonly key: string | null
  readonly recorded: Integer | null
}

const idOf = ({ id }: OldRow): string => String(id)

/** In bounded batches; ends early when `signal` aborts. */
export function purgesOf(layout: Layout) {
  const { c, sqlTable: table } = layout
  const keys = layout.keys.sqlTable
  const recorded = layout.hasKeys
    ? `(SELECT recorded_at FROM ${keys} AS known WHERE known.tenant_id = ${layout.text(`${table}.${c.tenantId}`)}
        AND known.idempotency_key = ${lastingKeyOf(layout)})`
    : 'NULL'
  /** The oldest first, on the index of processed rows, behind the batch before. */
  const walk = layout.statement(
    'oldest',
    `SELECT ${layout.text(c.id)} AS id, ${layout.text(c.processedAt)} AS processed, ${lastingKeyOf(layout)} AS key, ${recorded} AS recorded
     FROM ${table} WHERE ${c.processedAt} IS NOT NULL AND ${c.processedAt} < ${layout.time('processedAt', '$1')}
       AND NOT ${c.letterDue} AND (${c.processedAt}, ${c.id}) > (${layout.typed('processedAt', '$2')}, ${layout.typed('id', '$3')})
     ORDER BY ${table}.${c.processedAt}, ${table}.${c.id} LIMIT ${BATCH}`,
    { bigints: true },
  )
  const remove = layout.statement(
    'purge',
    `DELETE FROM ${table} WHERE ${inIdList(layout)} AND NOT ${c.letterDue}`,
  )
  const record = layout.statement(
    'recordKeys',
    `INSERT INTO ${keys} (tenant_id, idempotency_key, message_id, payload_sha256, recorded_at)
     SELECT ${asText(c.tenantId)}, ${lastingKeyOf(layout)}, ${asText(c.id)}, ${digestIn(layout.payloadBytes())}, $2
     FROM ${table} WHERE ${inIdList(layout)} ON CONFLICT DO NOTHING`,
  )
  const forget = layout.statement(
    'forgetKeys',
    `DELETE FROM ${keys} WHERE rowid IN (SELECT rowid FROM ${keys} WHERE recorded_at < $1 ORDER BY recorded_at LIMIT ${BATCH})`,
  )
  const start =
    layout.dialect === 'postgres' ? '-infinity' : /int/.test(layout.types.processedAt) ? -(2n ** 63n) : ''

  /** Rows whose keys are on record go; the keys of the others are recorded. */
  async function purgeBatch(tx: Transaction, cutoffs: Cutoffs, behind: Position) {
    const { now, processedBefore } = cutoffs
    const keepsKeys = cutoffs.recordedBefore !== null && layout.hasKeys
    const rows = await tx.rows<OldRow>(walk, processedBefore, behind.processed, behind.id)
    const mayGo = ({ key, recorded }: OldRow) => !keepsKeys || key === null || isOld(recorded, now)
    const unrecorded = rows.filter((row) => !mayGo(row) && row.recorded === null)
    if (unrecorded.length > 0) await tx.run(record, idList(layout, unrecorded.map(idOf)), now)
    const gone = rows.filter(mayGo).map(idOf)
    const removed = gone.length > 0 ? await tx.run(remove, idList(layout, gone)) : 0
    return { removed, last: rows.length < BATCH ? undefined : rows.at(-1) }
  }

  return async (db: Database, cutoffs: Cutoffs, signal: AbortSignal): Promise<Purged> => {
    const purged = { rows: 0, keys: 0 }
    let behind: Position | undefined = { processed: start, id: null }
    while (behind !== undefined && !signal.aborted) {
      const at: Position = behind
      const batch = await db.transaction('outbox.purge', (tx) => purgeBatch(tx, cutoffs, at))
      purged.rows += batch.removed
      behind = batch.last
    }
    const { recordedBefore } = cutoffs
    if (recordedBefore === null || !layout.hasKeys) return purged
    for (let forgotten = BATCH; forgotten === BATCH && !signal.aborted; purged.keys += forgotten)
      forgotten = await db.transaction('outbox.forget', (tx) => tx.run(forget, recordedBefore))
    return purged
  }
}

interface Position {
  readonly processed: string | bigint
  readonly id: string | bigint | null
}

/** Null where nobody can ask for the key: without a tenant, or when it is no uuid. */
function lastingKeyOf(layout: Layout): string {
  const { tenantId, idempotencyKey } = layout.c
  const key = `${layout.sqlTable}.${idempotencyKey}`
  const isKey =
    layout.dialect === 'sqlite' || layout.types.idempotencyKey === 'uuid'
      ? ''
      : ` AND ${key} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'`
  const uuid = layout.dialect === 'postgres' ? `${key}::text::uuid` : key
  return `CASE WHEN ${layout.sqlTable}.${tenantId} IS NOT NULL${isKey} THEN ${uuid} END`
}

const isOld = (recordedAt: Integer | null, now: Instant): boolean =>
  recordedAt !== null && BigInt(recordedAt) <= now - KEY_LEAD_US
