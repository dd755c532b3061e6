/** SQL for both stores: 20 consumers that jobs died at of so many different errors each, dead still or purged. */
const CONSUMERS = 20

const upTo = (count: number) =>
  `(WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count}) SELECT n FROM numbers)`

export const manyErrors = (errors: number, isPurged: boolean): string => `
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
    SELECT id, 0, ${isPurged ? 0 : 1}, 2 FROM bartleby.drawers;
  INSERT INTO bartleby.place_totals (place, status, letters, last_seen_at)
    SELECT id, 0, ${isPurged ? 0 : errors}, 2 FROM bartleby.places
    UNION ALL SELECT id, 4, ${errors}, 0 FROM bartleby.places
    UNION ALL SELECT id, 3, ${isPurged ? errors : 0}, 0 FROM bartleby.places;`
