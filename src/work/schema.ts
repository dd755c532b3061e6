/** The table of runs. `runs_open` has few rows; ids ascend with time. Instants are microseconds since 1970. `due_at` is a relic, always empty. */
import { inSqlite, type Migration } from '../store/migrations.ts'

/** Webhook runs had a table of their own: all move here. */
const moveWebhookRuns = (object: 'json_build_object' | 'json_object'): string => {
  const place = (column: 'next' | 'last') =>
    `${object}('createdAt', CAST(run.${column}_created_at AS text), 'id', run.${column}_job)`
  return `
    INSERT INTO bartleby.runs (id, kind, about, subject, place, actor, state, started_at, ended_at, expected, done)
    SELECT run.id, 'webhook-' || run.kind, channel.channel_id || '/' || consumer.consumer_id,
      CAST(${object}('consumer', run.consumer, 'channelId', channel.channel_id, 'consumerId', consumer.consumer_id,
        'last', ${place('last')}) AS text), CAST(${place('next')} AS text), run.actor,
      CASE WHEN run.finished_at IS NULL THEN 'running' ELSE 'done' END, run.started_at, run.finished_at, run.expected, run.done
    FROM bartleby.webhook_bulk_runs AS run
    JOIN bartleby.webhook_consumers AS consumer ON consumer.number = run.consumer
    JOIN bartleby.webhook_channels AS channel ON channel.number = consumer.channel;
    DROP TABLE bartleby.webhook_bulk_runs;`
}

const TABLE = `
    CREATE TABLE bartleby.runs (
      -- Ascends with time.
      id text COLLATE "C" PRIMARY KEY,
      kind text NOT NULL,
      -- Of runs that have one only one is open at a time.
      name text COLLATE "C",
      -- What it is done to, for people.
      about text NOT NULL,
      -- JSON of the kind: what is to be done, and how far it is.
      subject text NOT NULL,
      place text NOT NULL,
      actor text NOT NULL,
      -- running, paused, done, cancelled, failed
      state text NOT NULL,
      note text,
      started_at bigint NOT NULL,
      ended_at bigint,
      -- It has nothing to do before.
      due_at bigint,
      expected bigint,
      done bigint NOT NULL DEFAULT 0,
      skipped bigint NOT NULL DEFAULT 0,
      failed bigint NOT NULL DEFAULT 0,
      -- Rows a second: what is allowed, and what the server that is at it measures.
      rate double precision,
      rate_now double precision,
      resumed int NOT NULL DEFAULT 0,
      version int NOT NULL DEFAULT 1,
      owner text,
      owned_until bigint
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
    CREATE INDEX runs_open ON bartleby.runs (started_at) WHERE ended_at IS NULL;
    CREATE UNIQUE INDEX runs_one ON bartleby.runs (name) WHERE ended_at IS NULL;`

export const runMigration: Migration = {
  number: 15,
  name: 'runs',
  postgres: `${TABLE}
    ${moveWebhookRuns('json_build_object')}
  `,
  sqlite: `${inSqlite(TABLE)}
    ${moveWebhookRuns('json_object').replaceAll('bartleby.', '')}
  `,
}
