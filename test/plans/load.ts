/** A store as it looks after a busy week: one large partition, many scheduled items, and the rows of other queues. */
import type { Instant } from '../../src/core/clock.ts'

export interface Sizes {
  readonly ready: number
  readonly scheduled: number
  readonly others: number
  /** Letters, and as many rows of history. */
  readonly letters: number
  /** Webhook jobs. */
  readonly jobs: number
  /** Dead events of Kafka, and as many letters with entities in Azure; not more than letters. */
  readonly events: number
}

/** The partition that the statements under test work on; its serials start at 1. */
export const PART = 7

const OTHER_PARTS = 50

/** So many items at the head of the large partition are leased, whatever its size. */
export const LEASED = 100

/** SQL that fills the tables directly. */
export function loadScript(sizes: Sizes, now: Instant): string {
  return `
    INSERT INTO bartleby.queues
      (id, name, version, namespace, created_at, updated_at, lease_timeout_ns, expire_timeout_ns, max_attempts,
       requested_partitions, dead_queue)
      SELECT n, 'queue-' || n, 1, '_system', ${now}, ${now}, 60000000000, 86400000000000, 3, 1,
        CASE WHEN n % 2 = 0 THEN 'queue-' || (n - 1) END
      FROM generate_series(1, 2000) AS n;
    INSERT INTO bartleby.partitions (part, queue_id, number, id_prefix)
      SELECT n, n, 0, 'prefix' FROM generate_series(1, 2000) AS n;
    INSERT INTO bartleby.partition_totals SELECT n, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 2000) AS n;
    INSERT INTO bartleby.partition_deltas
      (part, ready, leased, scheduled, held, dead, created_s, created_us, deadline_s, deadline_us)
      SELECT 1 + n % 2000, 1, 0, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 20000) AS n;
    INSERT INTO bartleby.items (id, part, shelf, leased, attempts, lease_deadline, created_at, expire_at, payload)
      SELECT n, ${PART}, 0, CASE WHEN n <= ${LEASED} THEN 1 ELSE 0 END, CASE WHEN n <= ${LEASED} THEN 1 ELSE 0 END,
        CASE WHEN n <= ${LEASED} THEN ${now} + 60000000 END, ${now} + n, ${now} + n + 86400000000, '\\x68656c6c6f'
      FROM generate_series(1, ${sizes.ready}) AS n;
    INSERT INTO bartleby.lease_batches (part, due_at, deadline, runs)
      SELECT ${PART}, ${now} + 60007000 + n, ${now} + 60000000 + n, (n * 10 + 1) || ',' || (n * 10 + 10)
      FROM generate_series(0, ${LEASED / 10 - 1}) AS n;
    INSERT INTO bartleby.items (id, part, shelf, leased, attempts, created_at, expire_at, enqueue_at, payload)
      SELECT 2000000 + n, ${PART}, 1, 0, 0, ${now}, ${now} + 86400000000, ${now} + 3600000000 + n, '\\x68656c6c6f'
      FROM generate_series(1, ${sizes.scheduled}) AS n;
    INSERT INTO bartleby.items (id, part, shelf, leased, attempts, created_at, payload, source_id, case_id)
      SELECT 4000000 + n, 100 + n % ${OTHER_PARTS}, 0, 0, 0, ${now}, '\\x68656c6c6f', convert_to('s' || n, 'UTF8'),
        CASE WHEN n % 10 = 0 THEN 10000000 + n END
      FROM generate_series(1, ${sizes.others}) AS n;
    INSERT INTO bartleby.dedupe_keys SELECT 1 + n % 2000, convert_to('key-' || n, 'UTF8'), 'id', 0, ${now} + n
      FROM generate_series(1, 20000) AS n;
    SELECT setval('bartleby.serials', 50000000);`
}
