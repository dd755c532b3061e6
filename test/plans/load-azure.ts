/**
 * The same store's entities in Azure: the letters with the lowest numbers have a current one each, and every tenth an older one, too. A few
 * are being sent or are uncertain, whatever the size; four of ten were sent. Of all that are current something is not yet written, and
 * half of that is due.
 */
import type { Instant } from '../../src/core/clock.ts'
import { STATE } from '../../src/sources/azure/schema.ts'

/** Entities that are claimed or being sent, and as many that are uncertain. */
const FEW = 10

const name = (kind: string, number: string) => `'${kind}-' || lpad((${number})::text, 9, '0')`
/** The nth name of a kind. */
export const nameOf = (kind: 'entity' | 'correlation' | 'table', number: number): string =>
  `${kind}-${String(number).padStart(9, '0')}`

/** SQL that fills the tables of Azure for so many letters. */
export function azureScript(letters: number, now: Instant): string {
  const state = `CASE WHEN n <= ${FEW} THEN ${STATE.claimed} + n % 2 WHEN n <= ${2 * FEW} THEN ${STATE.uncertain}
    WHEN n % 10 < 4 THEN ${STATE.sent} ELSE ${STATE.resting} END`
  return `
    INSERT INTO bartleby.azure_entities (source_id, letter_id, written_at, sent_at, lease_until, is_current, state, engine, queue,
        correlation_id, partition_key, row_key, etag, claim)
      SELECT ${name('entity', 'n')}, n, ${now} + n, CASE WHEN state > ${STATE.sending} THEN ${now} + n END,
        CASE WHEN state IN (${STATE.claimed}, ${STATE.sending}) THEN ${now} END, 1, state, 'engine-' || n % 5, 'queue-' || n % 20,
        ${name('correlation', 'n')}, 'engine-' || n % 5, CASE WHEN n % 20 <> 0 THEN ${name('row', 'n')} END, 'etag-' || n,
        CASE WHEN state > ${STATE.resting} THEN 'claim-' || n END
      FROM (SELECT n, ${state} AS state FROM generate_series(1, ${letters}) AS n) AS entity;
    INSERT INTO bartleby.azure_entities (source_id, letter_id, written_at, is_current, state, engine, queue, correlation_id, partition_key,
        row_key, etag)
      SELECT ${name('older', 'n')}, n, ${now}, 0, ${STATE.resting}, 'engine-' || n % 5, 'queue-' || n % 20, ${name('correlation', 'n')},
        'engine-' || n % 5, ${name('row', 'n')}, 'etag-' || n
      FROM generate_series(10, ${letters}, 10) AS n;
    INSERT INTO bartleby.azure_writes (source_id, letter_id, acted_at, due_at, attempts)
      SELECT ${name('entity', 'n')}, n, ${now} + n, CASE WHEN n % 2 = 0 THEN ${now} - n ELSE ${now} + 60000000 + n END, n % 3
      FROM generate_series(1, ${letters}) AS n;
    INSERT INTO bartleby.azure_marks SELECT ${name('table', 'n')}, ${now} FROM generate_series(1, ${letters / 10}) AS n;`
}
