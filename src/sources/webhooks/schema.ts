/**
 * The tables of webhooks.
 *
 * - A scheduled message and the message that it becomes are one row: an id is unique over both because the row is.
 * - Jobs of a message have consecutive ids (`first_job`, `jobs`): a range of the primary key finds them, without an index of its own.
 * - `webhook_jobs` has one partial index per state, so that what is done costs the living nothing: `ready` for claims and pull lists,
 *   `later` for retries, `in_flight` for deadlines, `dead` for lists and bulk acts. `by_state` gives the oldest and the newest of each
 *   state, and tells whether a consumer has any job.
 * - `letter` is the number of a dead job's letter, set with the first failure: all failures are filed under it.
 * - `webhook_totals` and `webhook_deltas` count living jobs per consumer and messages per channel (counts.ts); dead jobs are counted as
 *   letters.
 *
 * Instants are microseconds since 1970.
 */
import { inSqlite, type Migration } from '../../store/migrations.ts'

const REGISTRY = `
    CREATE TABLE bartleby.webhook_producers (
      id text COLLATE "C" PRIMARY KEY,
      producer_id text COLLATE "C" NOT NULL UNIQUE,
      name text NOT NULL,
      token text NOT NULL,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL
    );
    CREATE INDEX webhook_producers_newest ON bartleby.webhook_producers (created_at, id);

    CREATE TABLE bartleby.webhook_channels (
      id text COLLATE "C" PRIMARY KEY,
      number int NOT NULL UNIQUE DEFAULT nextval('bartleby.webhook_numbers'),
      channel_id text COLLATE "C" NOT NULL UNIQUE,
      name text NOT NULL,
      token text NOT NULL,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL
    );
    CREATE INDEX webhook_channels_newest ON bartleby.webhook_channels (created_at, id);

    CREATE TABLE bartleby.webhook_consumers (
      id text COLLATE "C" PRIMARY KEY,
      number int NOT NULL UNIQUE DEFAULT nextval('bartleby.webhook_numbers'),
      channel int NOT NULL,
      consumer_id text COLLATE "C" NOT NULL,
      name text NOT NULL,
      token text NOT NULL,
      callback_url text NOT NULL,
      pulls smallint NOT NULL,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL,
      -- Deliveries are signed with both when there are both.
      secret text,
      previous_secret text,
      -- When the secret was made that is used now.
      secret_changed_at bigint,
      most_at_once int,
      most_per_second double precision,
      -- The circuit breaker: while it is paused nothing is claimed for it; when that is over, one job at a time is tried.
      paused_since bigint,
      paused_until bigint,
      pause_seconds int,
      pause_reason text,
      UNIQUE (channel, consumer_id)
    );
    CREATE INDEX webhook_consumers_newest ON bartleby.webhook_consumers (channel, created_at, id);
    CREATE INDEX webhook_consumers_paused ON bartleby.webhook_consumers (paused_since) WHERE paused_since IS NOT NULL;`

const MESSAGES = `
    CREATE TABLE bartleby.webhook_messages (
      id text COLLATE "C" NOT NULL PRIMARY KEY,
      channel int NOT NULL,
      message_id text COLLATE "C" NOT NULL,
      producer text COLLATE "C" NOT NULL,
      created_at bigint NOT NULL,
      -- NULL until it is dispatched: a scheduled message that waits is no message yet.
      received_at bigint,
      scheduled_for bigint,
      -- When the scheduler tries it next; NULL for what does not wait for it.
      next_try_at bigint,
      priority bigint NOT NULL,
      first_job text COLLATE "C",
      jobs int NOT NULL DEFAULT 0,
      tries int NOT NULL DEFAULT 0,
      content_type text NOT NULL,
      headers text NOT NULL,
      payload bytea NOT NULL,
      UNIQUE (channel, message_id)
    -- For the sake of the indexes of what waits, see webhook_jobs.
    ) WITH (autovacuum_vacuum_scale_factor = 0.05, vacuum_index_cleanup = on);
    CREATE INDEX webhook_messages_newest ON bartleby.webhook_messages (channel, received_at, id) WHERE received_at IS NOT NULL;
    CREATE INDEX webhook_messages_waiting_newest ON bartleby.webhook_messages (channel, created_at, id) WHERE next_try_at IS NOT NULL;
    CREATE INDEX webhook_messages_sent_newest ON bartleby.webhook_messages (channel, created_at, id)
      WHERE scheduled_for IS NOT NULL AND received_at IS NOT NULL;
    CREATE INDEX webhook_messages_waiting ON bartleby.webhook_messages (channel, scheduled_for) WHERE next_try_at IS NOT NULL;
    CREATE INDEX webhook_messages_due ON bartleby.webhook_messages (next_try_at, id) WHERE next_try_at IS NOT NULL;`

const JOBS = `
    CREATE TABLE bartleby.webhook_jobs (
      created_at bigint NOT NULL,
      changed_at bigint NOT NULL,
      -- later: when it is ready. in flight: when its claim is over.
      due_at bigint,
      priority bigint NOT NULL,
      letter bigint,
      consumer int NOT NULL,
      attempts int NOT NULL DEFAULT 0,
      extra_seconds int NOT NULL DEFAULT 0,
      state smallint NOT NULL,
      exhausted smallint NOT NULL DEFAULT 0,
      id text COLLATE "C" NOT NULL PRIMARY KEY,
      message text COLLATE "C" NOT NULL,
      claim text
    -- Delivered jobs stay, so that what changes is a small part of the table: by itself vacuum would leave the indexes alone then, and
    -- claims would pass ever more of what was claimed before.
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_index_cleanup = on);
    CREATE INDEX webhook_jobs_ready ON bartleby.webhook_jobs (consumer, priority DESC, created_at, id) WHERE state = 1;
    CREATE INDEX webhook_jobs_later ON bartleby.webhook_jobs (due_at, id) WHERE state = 0;
    CREATE INDEX webhook_jobs_later_of ON bartleby.webhook_jobs (consumer, priority DESC, created_at, id) WHERE state = 0;
    CREATE INDEX webhook_jobs_in_flight ON bartleby.webhook_jobs (due_at, id) WHERE state = 2;
    CREATE INDEX webhook_jobs_dead ON bartleby.webhook_jobs (consumer, created_at, id) WHERE state = 4;
    CREATE INDEX webhook_jobs_by_state ON bartleby.webhook_jobs (consumer, state, changed_at);

    CREATE TABLE bartleby.webhook_totals (
      subject int NOT NULL,
      tally smallint NOT NULL,
      amount bigint NOT NULL,
      PRIMARY KEY (subject, tally)
    );
    -- Requeuing or purging all dead jobs of a consumer: a row that any server goes on with.
    CREATE TABLE bartleby.webhook_bulk_runs (
      id text COLLATE "C" PRIMARY KEY,
      kind text NOT NULL,
      consumer int NOT NULL,
      actor text NOT NULL,
      started_at bigint NOT NULL,
      finished_at bigint,
      -- Through this job, the newest one that was dead at the start; behind that one it goes on.
      last_created_at bigint NOT NULL,
      last_job text COLLATE "C" NOT NULL,
      next_created_at bigint NOT NULL,
      next_job text COLLATE "C" NOT NULL,
      expected bigint NOT NULL,
      done bigint NOT NULL DEFAULT 0,
      owner text,
      owned_until bigint
    );
    CREATE INDEX webhook_bulk_runs_open ON bartleby.webhook_bulk_runs (started_at) WHERE finished_at IS NULL;
    CREATE INDEX webhook_bulk_runs_of ON bartleby.webhook_bulk_runs (consumer);

    -- Which seed was applied last.
    CREATE TABLE bartleby.webhook_seed (
      name text PRIMARY KEY,
      hash text NOT NULL,
      applied_at bigint NOT NULL
    );`

export const webhookMigration: Migration = {
  number: 6,
  name: 'webhooks',
  postgres: `
    -- Channels and consumers are numbered from one sequence: counts need no more than the number to tell them apart.
    CREATE SEQUENCE bartleby.webhook_numbers AS int;
    ${REGISTRY}
    ${MESSAGES}
    ${JOBS}

    CREATE TABLE bartleby.webhook_deltas (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      subject int NOT NULL,
      tally smallint NOT NULL,
      amount bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);

    -- When counts were folded last (db/fold.ts), by the name of the lock.
    CREATE TABLE bartleby.count_folds (name text PRIMARY KEY, folded_at bigint NOT NULL);
  `,
  sqlite: `
    CREATE TABLE webhook_numbers (last INTEGER NOT NULL) STRICT;
    INSERT INTO webhook_numbers VALUES (0);
    ${inSqlite(REGISTRY)}
    ${inSqlite(MESSAGES, 'STRICT')}
    ${inSqlite(JOBS)}
  `,
}
