/** Taking letters out of a dead queue by the calls of queues: that resolves them. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, integerList, type Statement, sql, type Transaction } from '../../db/database.ts'
import { type Act, type LetterId, letterId, STATUS } from '../letter.ts'
import { NO_PLACE, optionalInstant } from './place.ts'

const GONE = `letter.id, letter.drawer, letter.version + 1 AS version, letter.engine, letter.source_id,
  letter.instance_id, letter.correlation_id, old.serial, old.shelf, old.leased, old.laid_at, old.lease_deadline, old.leased_by`

/**
 * Takes letters out of their dead queue and resolves them, by their places. PostgreSQL reads and locks them first, and
 * then has no join to plan.
 */
const resolveThese = sql('lying.resolve', {
  postgres: `
    WITH old AS MATERIALIZED (
      SELECT ${GONE.replaceAll('old.', 'letter.')} FROM bartleby.letters AS letter
      WHERE part = $1 AND shelf = ANY($3::int[]) AND serial = ANY($2::bigint[]) AND leased >= $4
      ORDER BY part, shelf, serial FOR UPDATE
    ), resolved AS (
      UPDATE bartleby.letters SET status = ${STATUS.Resolved}, version = version + 1, resolved_at = $5, resolution = $6,
        resolved_by = coalesce($7, leased_by), ${NO_PLACE}
      WHERE id = ANY(ARRAY(SELECT id FROM old))
    )
    SELECT * FROM old`,
  sqlite: '',
})
const readThese = sql(
  'lying.readToResolve',
  {
    postgres: '',
    sqlite: `SELECT ${GONE.replaceAll('old.', 'letter.')} FROM letters AS letter INDEXED BY letters_lying
             WHERE part = $1 AND shelf IN (SELECT value FROM json_each($3)) AND serial IN (SELECT value FROM json_each($2))
               AND leased >= $4`,
  },
  { bigints: true },
)
const resolveOne = sql('lying.resolveOne', {
  postgres: '',
  sqlite: `UPDATE letters SET status = ${STATUS.Resolved}, version = version + 1, resolved_at = $2, resolution = $3,
             resolved_by = $4, ${NO_PLACE} WHERE id = $1`,
})

interface GoneRow {
  readonly id: Integer
  readonly drawer: Integer
  readonly version: Integer
  readonly engine: string
  readonly source_id: string
  readonly instance_id: string | null
  readonly correlation_id: string | null
  readonly serial: Integer
  readonly shelf: Integer
  readonly leased: Integer
  readonly laid_at: Integer
  readonly lease_deadline: Integer | null
  readonly leased_by: string | null
}

/** A letter that left its dead queue, with where it lay. */
export interface Lifted {
  readonly id: LetterId
  readonly drawer: number
  readonly version: number
  readonly engine: string
  readonly instanceId: string | null
  readonly correlationId: string
  readonly resolvedBy: string | null
  readonly serial: number
  readonly shelf: number
  readonly leased: boolean
  readonly laidAt: Instant
  readonly leaseDeadline: Instant | null
}

/**
 * Resolves what is there of these letters. With `by` null it is the client that holds the lease who resolves them.
 * History and counts are up to the caller.
 */
export async function resolveLying(
  tx: Transaction,
  part: number,
  serials: readonly number[],
  how: {
    readonly shelves: readonly number[]
    readonly leasedOnly: boolean
    readonly at: Instant
    readonly act: Act
    readonly by: string | null
  },
): Promise<Lifted[]> {
  if (serials.length === 0) return []
  const place = [
    part,
    integerList(tx.dialect, serials),
    integerList(tx.dialect, how.shelves),
    how.leasedOnly ? 1 : 0,
  ] as const
  const read: Statement = tx.dialect === 'postgres' ? resolveThese : readThese
  const rows = await tx.rows<GoneRow>(
    read,
    ...place,
    ...(tx.dialect === 'postgres' ? [how.at, how.act, how.by] : []),
  )
  const lifted = rows.map((row) => toLifted(row, how.by))
  if (tx.dialect === 'sqlite') {
    await tx.runEach(
      resolveOne,
      lifted.map((letter) => [letter.id, how.at, how.act, letter.resolvedBy]),
    )
  }
  return lifted
}

const toLifted = (row: GoneRow, by: string | null): Lifted => ({
  id: letterId(row.id),
  drawer: Number(row.drawer),
  version: Number(row.version),
  engine: row.engine,
  instanceId: row.instance_id,
  correlationId: row.correlation_id ?? row.source_id,
  resolvedBy: by ?? row.leased_by,
  serial: Number(row.serial),
  shelf: Number(row.shelf),
  leased: Number(row.leased) === 1,
  laidAt: instant(BigInt(row.laid_at)),
  leaseDeadline: optionalInstant(row.lease_deadline),
})
