/**
 * Dead rows become letters or reopen the ones they have, many in one transaction. The rows stay where they are: they
 * are the way back.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { storable, textBytes } from '../../../core/content.ts'
import { bury, PLAIN_RECORD } from '../../../letters/bury.ts'
import { type GivenDeath, takingGiven } from '../../../letters/capture.ts'
import { fileCaseFailures } from '../../../letters/confirm.ts'
import type { DeathReason, LetterId } from '../../../letters/letter.ts'
import type { CaseRow } from '../../../letters/locked.ts'
import type { Registers } from '../../../letters/registers.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import type { OutboxRow } from '../sql/letters.ts'
import type { Compared } from './reconcile.ts'
import { OUTBOX } from './rows-of-letters.ts'

/** `Class: message`, as dispatchers write it. A class may have several words: a thrown value may be no error. */
const ERROR = /^([\p{L}_$][\p{L}\p{N}_$. ]{0,127}): (.*)$/su

/** For rows that were marked dead by hand. */
const NO_ERROR = { errorClass: 'Error', errorMessage: 'its outbox kept no error' }

function errorIn(text: string | null): { readonly errorClass: string; readonly errorMessage: string } {
  if (text === null || text === '') return NO_ERROR
  const [, errorClass = 'Error', errorMessage = text] = ERROR.exec(text) ?? []
  return { errorClass, errorMessage }
}

/** Refused for good, or fatal to its dispatchers; else its attempts are used up. */
const REASONS: Readonly<Record<string, DeathReason>> = { PermanentError: 'rejected', PoisonMessage: 'failed' }

const MAX_ID_BYTES = 256

const correlationOf = ({ correlationId, key }: OutboxRow): string =>
  storable(correlationId || key, MAX_ID_BYTES)

/** `letter` is the one that it reopens, if it has one. */
function deathOf(
  { now }: OfficeWork,
  outbox: string,
  { row, letter, sourceId }: Pick<Compared, 'row' | 'letter' | 'sourceId'>,
): RowDeath {
  const error = errorIn(row.error)
  const lastFailureAt = diedAt(row, now, letter?.resolvedAt)
  const earlier = earlierFailuresOf(row, diedAt(row, now))
  const [first] = earlier
  return {
    row,
    earlier,
    cause: {
      source: OUTBOX,
      engine: OUTBOX,
      queue: outbox,
      reason: REASONS[error.errorClass] ?? 'attempts',
      ...error,
      errorStack: null,
      failedBy: outbox,
      record: { ...PLAIN_RECORD, actor: outbox },
    },
    caseId: letter?.id ?? null,
    sourceId,
    diedAs: row.id,
    attempts: row.retryCount,
    position: null,
    ...(row.tenantId !== '' && { instanceId: storable(row.tenantId, MAX_ID_BYTES) }),
    correlationId: correlationOf(row),
    lastFailureAt,
    firstFailureAt: first?.failedAt ?? lastFailureAt,
    item: {
      itemCreatedAt: row.createdAt,
      dequeueCount: row.retryCount,
      partition: null,
      encoding: null,
      kind: textBytes(row.eventType),
      reference: textBytes(row.key),
      headers: headersOf(row),
      payload: row.payload.length === 0 ? null : row.payload,
    },
  }
}

interface RowDeath extends GivenDeath {
  readonly row: OutboxRow
  readonly earlier: readonly EarlierFailure[]
}

/** Gives the letters by the ids of the rows. `letters` are locked. */
export async function buryRows(
  work: OfficeWork,
  registers: Registers,
  outbox: string,
  dead: readonly Pick<Compared, 'row' | 'letter' | 'sourceId'>[],
  letters: ReadonlyMap<LetterId, CaseRow>,
): Promise<ReadonlyMap<string, LetterId>> {
  const deaths = dead.map((each) => deathOf(work, outbox, each))
  const { letters: buried } = await bury(work, registers, { ...takingGiven<RowDeath>(), letters }, deaths)
  const failures = [...buried].flatMap(([{ row, earlier }, caseId]) =>
    earlier.map((failure) => ({
      ...failure,
      caseId,
      failedBy: outbox,
      errorStack: null,
      correlationId: correlationOf(row),
    })),
  )
  await fileCaseFailures(work, failures)
  return new Map([...buried].map(([{ row }, id]) => [row.id, id]))
}

/** By the dispatcher's clock, unless that contradicts the office's own. */
function diedAt({ deadAt }: OutboxRow, now: Instant, notBefore?: Instant | null): Instant {
  if (deadAt === null || deadAt > now) return now
  return notBefore != null && deadAt < notBefore ? now : deadAt
}

interface EarlierFailure {
  readonly failedAt: Instant
  readonly errorClass: string
  readonly errorMessage: string
}

/** The oldest first; none later than the last. */
function earlierFailuresOf({ earlierFailures }: OutboxRow, lastAt: Instant): readonly EarlierFailure[] {
  const list = parsed(earlierFailures)
  return (Array.isArray(list) ? list : []).flatMap((each: unknown) => {
    if (typeof each !== 'object' || each === null) return []
    const [at, error] = [Reflect.get(each, 'at'), Reflect.get(each, 'error')]
    // Anybody may have changed what dispatchers wrote.
    if (typeof at !== 'string' || !/^\d{1,18}$/.test(at) || typeof error !== 'string') return []
    const failedAt = instant(BigInt(at))
    return [{ failedAt: failedAt > lastAt ? lastAt : failedAt, ...errorIn(error) }]
  })
}

function headersOf(row: OutboxRow): Uint8Array {
  const { eventType, tenantId, key: idempotencyKey, orderingKey } = row
  return Buffer.from(
    JSON.stringify({ eventType, tenantId, idempotencyKey, orderingKey, headers: parsed(row.headers) }),
  )
}

/** Applications may have written no JSON. */
function parsed(json: string | null): unknown {
  try {
    return json === null ? null : JSON.parse(json)
  } catch {
    return json
  }
}
