/**
 * The same store's letters and history: most letters are resolved, half of them are of plain queues, a few lie in a
 * dead queue. One drawer and one series are rare and old: what they hold is the hardest to find.
 */
import type { Instant } from '../../src/core/clock.ts'
import { ERASE_OPERATION } from '../../src/letters/erase.ts'

/** Drawers and series that all letters and rows are spread over; the one behind the last is the rare one. */
export const DRAWERS = 200
export const SERIES = 100

/** The dead queue that some letters lie in. */
export const DEAD_PART = 9

const SIGNATURES = 50

/** Texts to search; fewer than letters, because their index takes long to fill. */
const MAX_TEXTS = 20_000

/** A name that grows with its number, as the ids of items grow with time. */
const named = (prefix: string, number: string) => `'${prefix}-' || lpad((${number})::text, 9, '0')`

/** SQL that fills the tables of letters and history with `rows` of each, one microsecond apart. */
export function letterScript(rows: number, now: Instant): string {
  const hour = now - (now % 3_600_000_000n)
  const series = `CASE WHEN n <= 3 THEN ${SERIES + 1} ELSE 1 + n % ${SERIES} END`
  return `
    INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at)
      SELECT '1-' || n, 'Error', 'title ' || n, 0 FROM generate_series(1, ${SIGNATURES}) AS n;
    CREATE TEMPORARY TABLE labels AS
      SELECT n, CASE WHEN n % 2 = 0 THEN 'queues' ELSE 'engines' END AS source,
        CASE WHEN n % 2 = 0 THEN 'queues' ELSE 'engine-' || n % 5 END AS engine, 'queue-' || n / ${SIGNATURES} AS queue
      FROM generate_series(1, ${DRAWERS + 1}) AS n;
    INSERT INTO bartleby.places (source, engine, queue) SELECT DISTINCT source, engine, queue FROM labels;
    INSERT INTO bartleby.drawers (source, engine, queue, signature, place)
      SELECT source, engine, queue, 1 + n % ${SIGNATURES}, places.id
      FROM labels JOIN bartleby.places USING (source, engine, queue) ORDER BY n;
    DROP TABLE labels;
    INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, resolved_at, drawer, version,
        dequeue_count, part, shelf, serial, laid_at, enqueue_at, status, resolution, confirmed_at, engine, source_id,
        instance_id, correlation_id, reason, error_class, error_message, payload)
      SELECT n, ${now} + n, ${now} + n, ${now} + n, CASE WHEN status = 1 THEN ${now} + n END,
        CASE WHEN n <= 3 THEN ${DRAWERS + 1} ELSE 1 + n % ${DRAWERS} END, 1, 1,
        CASE WHEN lying THEN ${DEAD_PART} END, CASE WHEN lying THEN CASE WHEN n % 1000 = 0 THEN 1 ELSE 0 END END,
        CASE WHEN lying THEN n END, CASE WHEN lying THEN ${now} END, CASE WHEN n % 1000 = 0 THEN ${now} + n END, status,
        CASE WHEN status = 1 THEN 'retry' END, CASE WHEN status = 1 AND n % 20 <> 1 THEN ${now} + n END,
        CASE WHEN ours THEN 'queues' WHEN n % 20 = 9 THEN 'webhooks' WHEN n % 20 = 13 THEN 'kafka' ELSE 'engine-' || n % 5 END, ${named('source', 'n')},
        CASE WHEN NOT ours THEN 'instance-' || n % 1000 END, CASE WHEN NOT ours THEN ${named('correlation', 'n')} END,
        'failed', 'Error', 'message ' || n, '\\x68656c6c6f'
      FROM (SELECT n, n % 100 = 0 AS lying, n % 2 = 0 AS ours,
          CASE WHEN n % 100 = 0 OR n % 20 = 7 THEN 0 WHEN n % 20 = 11 THEN 2 ELSE 1 END AS status
        FROM generate_series(1, ${rows}) AS n) AS letter;
    SELECT setval('bartleby.letter_ids', ${rows});
    INSERT INTO bartleby.letter_attempts (letter_id, number, failed_at, superseded_at, error_class, error_message)
      SELECT n, 1, ${now} + n - 10, ${now} + n, 'Error', 'message' FROM generate_series(1, ${rows}, 20) AS n;
    INSERT INTO bartleby.letter_texts
      SELECT n, 'message' || md5(n::text) FROM generate_series(1, ${Math.min(rows, MAX_TEXTS)}) AS n;
    INSERT INTO bartleby.letters_to_file (first_letter, last_letter)
      SELECT ${rows} - n, ${rows} - n FROM generate_series(1, 50) AS n;
    INSERT INTO bartleby.letter_totals
      SELECT drawer, status, 100, ${now} FROM generate_series(1, ${DRAWERS + 1}) AS drawer, unnest(ARRAY[0, 1, 2, 5, 6, 7, 8, 9, 10]) AS status;
    INSERT INTO bartleby.place_totals
      SELECT id, status, 100, ${now} FROM bartleby.places, generate_series(0, 10) AS status;
    INSERT INTO bartleby.letter_changes (place, drawer, status, at, letters, last_seen_at)
      SELECT place, id, n % 11, ${hour}, 1, ${now}
      FROM generate_series(1, 5000) AS n JOIN bartleby.drawers ON id = 1 + n % ${DRAWERS};
    INSERT INTO bartleby.letter_hours
      SELECT subject, act, ${hour} - n * 3600000000, 1
      FROM generate_series(${-DRAWERS}, ${DRAWERS}) AS subject, generate_series(0, 1) AS act, generate_series(0, 47) AS n;
    INSERT INTO bartleby.letter_minutes
      SELECT act, ${hour} - n * 60000000::bigint, 1 FROM generate_series(0, 5) AS act, generate_series(0, 1500) AS n;
    INSERT INTO bartleby.idempotency_keys
      SELECT 'caller POST /api/dlq', 'key-' || n, ${now} + n, 200, '{}' FROM generate_series(1, ${Math.min(rows, 20_000)}) AS n;
    INSERT INTO bartleby.history_series (engine, operation, status)
      SELECT 'engine-' || n % 10, 'operation-' || n, n % 2 FROM generate_series(1, ${SERIES + 1}) AS n;
    UPDATE bartleby.history_series SET (engine, operation, status) = (told.engine, told.operation, 0)
      FROM (VALUES (1, 'queues', 'capture'), (4, 'engine-3', 'retry'), (6, 'office', '${ERASE_OPERATION}')) AS told (id, engine, operation)
      WHERE history_series.id = told.id;
    INSERT INTO bartleby.history
        (created_at, duration_ms, letter_id, series, letter_version, correlation_id, instance_id)
      SELECT ${now} + n, 1, CASE WHEN n % 4 <> 1 THEN n END, ${series}, CASE WHEN n % 4 <> 1 THEN 1 END,
        CASE WHEN n % 2 = 1 THEN ${named('correlation', 'n')} END, CASE WHEN n % 4 = 1 THEN 'instance-' || n % 1000 END
      FROM generate_series(1, ${rows}) AS n;
    INSERT INTO bartleby.history_sources (engine, source_id, created_at, history_id, series)
      SELECT 'engine-1', ${named('source', 'n')}, ${now} + n, n, ${series} FROM generate_series(1, ${Math.min(rows, 20_000)}) AS n;`
}
