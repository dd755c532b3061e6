/** SQL for both stores: 20 consumers that jobs died at of so many different errors each, dead still or purged. */
const CONSUMERS = 20

/** What is left of the dead jobs: all, none, or one of each consumer. Only that one has a letter: the others are counted. */
export type Left = 'all' | 'none' | 'one'

/** The drawer of each place whose letter is left. */
const FIRST = '(SELECT min(id) FROM bartleby.drawers GROUP BY place)'

const upTo = (count: number) =>
  `(WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count}) SELECT n FROM numbers)`

export const manyErrors = (errors: number, left: Left): string => `
  INSERT INTO bartleby.webhook_channels (id, number, channel_id, name, token, created_at, updated_at)
    VALUES ('c', 1, 'orders', 'orders', 'token', 1, 1);
  INSERT INTO bartleby.webhook_consumers (id, number, channel, consumer_id, name, token, callback_url, pulls, created_at, updated_at)
    SELECT 'k' || n, 1000 + n, 1, 'consumer-' || n, 'name', 'token', 'http://localhost/', 0, 1, 1 FROM ${upTo(CONSUMERS)} AS numbers;
  INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at)
    SELECT '1-' || n, 'Error', 'error ' || n, 1 FROM ${upTo(errors)} AS numbers;
  INSERT INTO bartleby.places (source, engine, queue)
    SELECT 'webhooks', 'webhooks', 'orders/' || consumer_id FROM bartleby.webhook_consumers;
  INSERT INTO bartleby.drawers (source, engine, queue, signature, place)
    SELECT source, engine, queue, signatures.id, places.id FROM bartleby.places CROSS JOIN bartleby.signatures;
  INSERT INTO bartleby.letter_totals (drawer, status, letters, last_seen_at)
    SELECT id, 0, ${{ all: '1', none: '0', one: `CASE WHEN id IN ${FIRST} THEN 1 ELSE 0 END` }[left]}, 2 FROM bartleby.drawers;
  INSERT INTO bartleby.place_totals (place, status, letters, last_seen_at)
    SELECT id, 0, ${pending(errors, left)}, 2 FROM bartleby.places
    UNION ALL SELECT id, 4, ${errors}, 0 FROM bartleby.places
    UNION ALL SELECT id, 3, ${errors - pending(errors, left)}, 0 FROM bartleby.places;
  INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, drawer, version, dequeue_count, status, engine,
      source_id, reason, error_class, error_message)
    SELECT id, 2, 2, 2, id, 1, 1, 0, 'webhooks', 'job-' || id, 'failed', 'Error', 'error'
    FROM bartleby.drawers WHERE ${left === 'one'} AND id IN ${FIRST};`

const pending = (errors: number, left: Left): number => ({ all: errors, none: 0, one: 1 })[left]
