-- Written by `npm run schema` from a store after all migrations; do not edit.

CREATE SEQUENCE bartleby.parts AS integer;

CREATE SEQUENCE bartleby.queue_ids AS integer;

CREATE SEQUENCE bartleby.serials AS bigint;

CREATE TABLE bartleby.dedupe_keys (
  queue_id integer NOT NULL,
  key bytea NOT NULL,
  item_id text NOT NULL,
  partition integer NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (queue_id, key)
);

CREATE TABLE bartleby.dropped_parts (
  part integer NOT NULL,
  dropped_at bigint NOT NULL,
  PRIMARY KEY (part)
);

CREATE TABLE bartleby.items (
  id bigint NOT NULL,
  created_at bigint NOT NULL,
  expire_at bigint,
  enqueue_at bigint,
  lease_deadline bigint,
  part integer NOT NULL,
  attempts integer NOT NULL,
  shelf smallint NOT NULL,
  leased smallint NOT NULL,
  max_attempts integer,
  encoding bytea,
  kind bytea,
  reference bytea,
  payload bytea,
  source_id bytea,
  died_at bigint,
  death_reason text,
  death_queue text,
  death_partition integer,
  death_attempts integer,
  death_created_at bigint,
  PRIMARY KEY (part, shelf, id)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_cost_delay=0);

CREATE TABLE bartleby.lease_batches (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  part integer NOT NULL,
  due_at bigint NOT NULL,
  deadline bigint NOT NULL,
  runs text NOT NULL,
  PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.locks (
  name text NOT NULL,
  owner text NOT NULL,
  deadline bigint NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE bartleby.migrations (
  number integer NOT NULL,
  name text NOT NULL,
  applied_at timestamp with time zone NOT NULL DEFAULT now(),
  PRIMARY KEY (number)
);

CREATE TABLE bartleby.partition_deltas (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  part integer NOT NULL,
  ready bigint NOT NULL,
  leased bigint NOT NULL,
  scheduled bigint NOT NULL,
  held bigint NOT NULL,
  dead bigint NOT NULL,
  created_s bigint NOT NULL,
  created_us bigint NOT NULL,
  deadline_s bigint NOT NULL,
  deadline_us bigint NOT NULL,
  PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.partition_totals (
  part integer NOT NULL,
  ready bigint NOT NULL,
  leased bigint NOT NULL,
  scheduled bigint NOT NULL,
  held bigint NOT NULL,
  dead bigint NOT NULL,
  created_s bigint NOT NULL,
  created_us bigint NOT NULL,
  deadline_s bigint NOT NULL,
  deadline_us bigint NOT NULL,
  PRIMARY KEY (part)
);

CREATE TABLE bartleby.partitions (
  part integer NOT NULL,
  queue_id integer NOT NULL,
  number integer NOT NULL,
  id_prefix text NOT NULL,
  PRIMARY KEY (part),
  UNIQUE (queue_id, number)
);

CREATE TABLE bartleby.queues (
  id integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  version integer NOT NULL DEFAULT 1,
  namespace text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  lease_timeout_ns bigint NOT NULL,
  expire_timeout_ns bigint NOT NULL,
  max_attempts integer NOT NULL,
  requested_partitions integer NOT NULL,
  dead_queue text COLLATE "C",
  reference bytea,
  UNIQUE (name),
  PRIMARY KEY (id)
);

CREATE INDEX dedupe_keys_until ON bartleby.dedupe_keys USING btree (until);

CREATE UNIQUE INDEX items_by_source ON bartleby.items USING btree (part, source_id) WHERE (source_id IS NOT NULL);

CREATE INDEX items_expiring ON bartleby.items USING btree (expire_at) WHERE ((shelf = 0) AND (expire_at IS NOT NULL));

CREATE INDEX items_held ON bartleby.items USING btree (part, id) WHERE (shelf = 2);

CREATE INDEX items_scheduled ON bartleby.items USING btree (enqueue_at, id) WHERE (shelf = 1);

CREATE INDEX lease_batches_due ON bartleby.lease_batches USING btree (due_at);

CREATE INDEX partition_deltas_by_part ON bartleby.partition_deltas USING btree (part);

CREATE INDEX queues_by_dead_queue ON bartleby.queues USING btree (dead_queue) WHERE (dead_queue IS NOT NULL);
