/**
 * The same store's webhooks: most jobs are delivered, the rest are in every other state. Two thirds belong to one push consumer and
 * to one pull consumer that takes nothing, the rest to some others; all others have none. Ids can be told from numbers.
 */
import type { Instant } from '../../src/core/clock.ts'

/** The channel that all messages were sent to. */
export const CHANNEL = 1
/** The push consumer of that channel that has a third of the jobs, and the pull consumer. */
export const PUSHED = 100_001
export const PULLED = 100_002
/** The other consumers that have jobs. */
export const FIRST_OTHER = 100_003
export const OTHERS = 10
/** One of those that are paused. */
export const PAUSED = 100_065

/** Consumers of the channel that no message was ever sent to. */
const QUIET = 40
const STATE =
  'CASE WHEN n % 100 < 60 THEN 3 WHEN n % 100 < 75 THEN 4 WHEN n % 100 < 85 THEN 1 WHEN n % 100 < 95 THEN 0 ELSE 2 END'

const id = (prefix: string, number: string) => `'${prefix}' || lpad((${number})::text, 9, '0')`
/** The id of the nth of a kind. */
export const idOf = (prefix: string, number: number): string => `${prefix}${String(number).padStart(9, '0')}`

/**
 * SQL that fills the tables of webhooks with so many jobs, half as many messages, and a tenth as many producers and channels.
 * The letters of dead jobs are those that are there: `letters` of them.
 */
export function webhookScript(jobs: number, letters: number, now: Instant): string {
  const registry = jobs / 10
  return `
    INSERT INTO bartleby.webhook_producers (id, producer_id, name, token, created_at, updated_at)
      SELECT ${id('p', 'n')}, 'producer-' || n, 'name', 'token', ${now} + n, ${now} FROM generate_series(1, ${registry}) AS n;
    INSERT INTO bartleby.webhook_channels (id, number, channel_id, name, token, created_at, updated_at)
      SELECT ${id('c', 'n')}, n, 'channel-' || n, 'name', 'token', ${now} + n, ${now} FROM generate_series(1, ${registry}) AS n;
    INSERT INTO bartleby.webhook_consumers
        (id, number, channel, consumer_id, name, token, callback_url, pulls, created_at, updated_at, paused_since, paused_until, pause_seconds)
      SELECT ${id('k', 'n')}, 100000 + n, CASE WHEN n <= 2 OR n > ${registry - QUIET} THEN ${CHANNEL} ELSE n END, 'consumer-' || n, 'name',
        'token', 'http://localhost/' || n, CASE WHEN n = ${PULLED} - 100000 THEN 1 ELSE 0 END, ${now} + n, ${now},
        CASE WHEN paused THEN ${now} + n END, CASE WHEN paused THEN ${now} + n END, CASE WHEN paused THEN 5 END
      FROM (SELECT n, n BETWEEN 61 AND 70 AS paused FROM generate_series(1, ${registry}) AS n) AS consumer;
    INSERT INTO bartleby.webhook_messages (id, channel, message_id, producer, created_at, received_at, scheduled_for, next_try_at,
        priority, first_job, jobs, content_type, headers, payload)
      SELECT ${id('m', 'n')}, ${CHANNEL}, 'message-' || n, ${id('p', `1 + n % ${registry}`)}, ${now} + n,
        CASE WHEN n % 20 <> 0 THEN ${now} + n END, CASE WHEN n % 10 = 0 THEN ${now} + 60000000 + n END,
        CASE WHEN n % 20 = 0 THEN ${now} + 60000000 + n END, 0, CASE WHEN n % 20 <> 0 THEN ${id('j', '2 * n - 1')} END,
        CASE WHEN n % 20 <> 0 THEN 2 ELSE 0 END, 'text/plain', '[]', '\\x68656c6c6f'
      FROM generate_series(1, ${jobs / 2}) AS n;
    INSERT INTO bartleby.webhook_jobs (id, message, consumer, state, created_at, changed_at, due_at, priority, attempts, claim, letter, exhausted)
      SELECT ${id('j', 'n')}, ${id('m', '(n + 1) / 2')},
        CASE WHEN n % 3 = 0 THEN ${FIRST_OTHER} + n % ${OTHERS} WHEN n % 3 = 1 THEN ${PUSHED} ELSE ${PULLED} END, state, ${now} + n, ${now} + n,
        CASE WHEN state IN (0, 2) THEN ${now} + 60000000 + n END, n % 3, CASE WHEN state = 4 THEN 5 ELSE 0 END,
        CASE WHEN state = 2 THEN 'claim' END, CASE WHEN state = 4 THEN 1 + n % ${letters} END, CASE WHEN state = 4 THEN 1 ELSE 0 END
      FROM (SELECT n, ${STATE} AS state FROM generate_series(1, ${jobs}) AS n) AS job;
    INSERT INTO bartleby.webhook_totals
      SELECT 100000 + n, tally, 10 FROM generate_series(1, ${OTHERS + 2}) AS n, generate_series(1, 3) AS tally;
    INSERT INTO bartleby.webhook_totals SELECT ${CHANNEL}, tally, 10 FROM generate_series(11, 13) AS tally;
    INSERT INTO bartleby.webhook_deltas (subject, tally, amount)
      SELECT 100001 + n % ${OTHERS}, 1 + n % 3, 1 FROM generate_series(1, 5000) AS n;
    INSERT INTO bartleby.places (source, engine, queue)
      SELECT 'webhooks', 'webhooks', 'channel-' || n || '/consumer-' || n FROM generate_series(3, ${OTHERS} + 2) AS n;
    INSERT INTO bartleby.drawers (source, engine, queue, signature, place)
      SELECT source, engine, queue, 1, id FROM bartleby.places WHERE source = 'webhooks';
    INSERT INTO bartleby.letter_totals
      SELECT id, 0, 10, ${now} FROM bartleby.drawers WHERE source = 'webhooks';
    INSERT INTO bartleby.place_totals
      SELECT id, 0, 10, ${now} FROM bartleby.places WHERE source = 'webhooks';
    INSERT INTO bartleby.count_folds VALUES ('letters.foldChanges', ${now});
    INSERT INTO bartleby.webhook_seed VALUES ('seed', 'hash', ${now});
    SELECT setval('bartleby.webhook_numbers', 1000000);`
}
