/** What a dead row says about its death, in the words of letters. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Death, storable } from '../../letters/death-note.ts'
import type { DeathReason } from '../../letters/letter.ts'
import type { OutboxRow } from '../sql/letters.ts'
import { OUTBOX } from './rows-of-letters.ts'

/** `Class: message`, as dispatchers write it. A class may be of several words: what was thrown may be no error. */
const ERROR = /^([\p{L}_$][\p{L}\p{N}_$. ]{0,127}): (.*)$/su

/** What is said of rows that say nothing: they were marked by hand. */
const NO_ERROR = { errorClass: 'Error', errorMessage: 'its outbox kept no error' }

export function errorIn(text: string | null): { readonly errorClass: string; readonly errorMessage: string } {
  if (text === null || text === '') return NO_ERROR
  const [, errorClass = 'Error', errorMessage = text] = ERROR.exec(text) ?? []
  return { errorClass, errorMessage }
}

/** Its receiver refuses it for good; it ends the dispatchers that deliver it; otherwise its attempts are used up. */
const REASONS: Readonly<Record<string, DeathReason>> = { PermanentError: 'rejected', PoisonMessage: 'failed' }

const MAX_ID_BYTES = 256

/** Its own, or its key. */
export const correlationOf = ({ correlationId, key }: OutboxRow): string =>
  storable(correlationId || key, MAX_ID_BYTES)

/** The death of a row of this outbox; `operation` is what history calls it. */
export function deathOf(outbox: string, row: OutboxRow, operation: 'capture' | 'reopen'): Death {
  const error = errorIn(row.error)
  return {
    source: OUTBOX,
    engine: OUTBOX,
    queue: outbox,
    instanceId: row.tenantId === '' ? null : storable(row.tenantId, MAX_ID_BYTES),
    correlationId: correlationOf(row),
    reason: REASONS[error.errorClass] ?? 'attempts',
    ...error,
    errorStack: null,
    failedBy: outbox,
    record: { operation, status: 'Succeeded', durationMs: 0, actor: outbox, input: null, output: null },
  }
}

/** When it died: by the clock of its dispatcher, unless that contradicts the office's own. */
export function diedAt({ deadAt }: OutboxRow, now: Instant, notBefore: Instant | null = null): Instant {
  if (deadAt === null || deadAt > now) return now
  return notBefore !== null && deadAt < notBefore ? now : deadAt
}

/** A failure before the one that it died of. */
export interface EarlierFailure {
  readonly failedAt: Instant
  readonly errorClass: string
  readonly errorMessage: string
}

/** The failures before the last one, the oldest first; none is later than that. */
export function earlierFailuresOf(
  { earlierFailures }: OutboxRow,
  lastAt: Instant,
): readonly EarlierFailure[] {
  const list = parsed(earlierFailures)
  return (Array.isArray(list) ? list : []).flatMap((each: unknown) => {
    if (typeof each !== 'object' || each === null) return []
    const [at, error] = [Reflect.get(each, 'at'), Reflect.get(each, 'error')]
    // Written by dispatchers; anybody may have changed it since.
    if (typeof at !== 'string' || !/^\d{1,18}$/.test(at) || typeof error !== 'string') return []
    const failedAt = instant(BigInt(at))
    return [{ failedAt: failedAt > lastAt ? lastAt : failedAt, ...errorIn(error) }]
  })
}

/** What a letter keeps of a row beside its payload. */
export function headersOf(row: OutboxRow): Uint8Array {
  const { eventType, tenantId, key: idempotencyKey, orderingKey } = row
  return Buffer.from(
    JSON.stringify({ eventType, tenantId, idempotencyKey, orderingKey, headers: parsed(row.headers) }),
  )
}

/** What others wrote may be no JSON. */
function parsed(json: string | null): unknown {
  try {
    return json === null ? null : JSON.parse(json)
  } catch {
    return json
  }
}
