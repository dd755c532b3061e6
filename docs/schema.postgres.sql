-- Written by `npm run schema` from a store after all migrations; do not edit.

CREATE EXTENSION pg_trgm WITH SCHEMA public;

CREATE SEQUENCE bartleby.kafka_intake AS bigint;

CREATE SEQUENCE bartleby.letter_ids AS bigint;

CREATE SEQUENCE bartleby.parts AS integer;

CREATE SEQUENCE bartleby.queue_ids AS integer;

CREATE SEQUENCE bartleby.serials AS bigint;

CREATE SEQUENCE bartleby.webhook_numbers AS integer;

CREATE TABLE bartleby.azure_entities (
  source_id text COLLATE "C" NOT NULL,
  letter_id bigint NOT NULL,
  written_at bigint NOT NULL,
  sent_at bigint,
  lease_until bigint,
  is_current smallint NOT NULL,
  state smallint NOT NULL,
  engine text COLLATE "C" NOT NULL,
  queue text COLLATE "C",
  correlation_id text COLLATE "C" NOT NULL,
  partition_key text COLLATE "C",
  row_key text COLLATE "C",
  etag text,
  claim text,
  PRIMARY KEY (source_id)
);

CREATE TABLE bartleby.azure_marks (
  name text COLLATE "C" NOT NULL,
  read_to bigint NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE bartleby.azure_writes (
  source_id text COLLATE "C" NOT NULL,
  letter_id bigint NOT NULL,
  acted_at bigint NOT NULL,
  due_at bigint NOT NULL,
  attempts integer NOT NULL,
  trouble text,
  PRIMARY KEY (source_id)
);

CREATE TABLE bartleby.count_folds (
  name text NOT NULL,
  folded_at bigint NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE bartleby.dedupe_keys (
  queue_id integer NOT NULL,
  key bytea NOT NULL,
  item_id text NOT NULL,
  partition integer NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (queue_id, key)
);

CREATE TABLE bartleby.drawers (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source text COLLATE "C" NOT NULL,
  engine text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  signature integer NOT NULL,
  place integer NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (source, engine, queue, signature)
);

CREATE TABLE bartleby.dropped_parts (
  part integer NOT NULL,
  dropped_at bigint NOT NULL,
  PRIMARY KEY (part)
);

CREATE TABLE bartleby.engine_queues (
  queue text COLLATE "C" NOT NULL,
  engine text COLLATE "C" NOT NULL,
  PRIMARY KEY (queue)
);

CREATE TABLE bartleby.history (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  created_at bigint NOT NULL,
  duration_ms bigint NOT NULL,
  letter_id bigint,
  series integer NOT NULL,
  letter_version integer,
  correlation_id text COLLATE "C",
  instance_id text COLLATE "C",
  actor text,
  notes text,
  error text,
  input bytea,
  output bytea,
  short_key smallint DEFAULT 1,
  PRIMARY KEY (series, created_at, id)
);

CREATE TABLE bartleby.history_series (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  engine text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  status smallint NOT NULL,
  UNIQUE (engine, operation, status),
  PRIMARY KEY (id)
);

CREATE TABLE bartleby.history_sources (
  engine text COLLATE "C" NOT NULL,
  source_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  history_id bigint NOT NULL,
  series integer NOT NULL,
  PRIMARY KEY (engine, source_id)
);

CREATE TABLE bartleby.idempotency_keys (
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  answered_at bigint NOT NULL,
  status smallint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (scope, key)
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
  case_id bigint,
  PRIMARY KEY (part, shelf, id)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_cost_delay=0);

CREATE TABLE bartleby.kafka_chain (
  letter_id bigint NOT NULL,
  number integer NOT NULL,
  record_offset bigint NOT NULL,
  record_ts bigint NOT NULL,
  superseded_at bigint NOT NULL,
  partition integer NOT NULL,
  value_null smallint NOT NULL,
  dlq_id uuid NOT NULL,
  event_id uuid,
  topic text COLLATE "C" NOT NULL,
  facts bytea NOT NULL,
  record_key bytea,
  headers bytea,
  value bytea,
  PRIMARY KEY (letter_id, number)
);

CREATE TABLE bartleby.kafka_events (
  letter_id bigint NOT NULL,
  order_ts bigint NOT NULL,
  record_offset bigint NOT NULL,
  intake bigint NOT NULL,
  record_ts bigint NOT NULL,
  same_key bigint,
  lease_until bigint,
  partition integer NOT NULL,
  attempts integer NOT NULL,
  state smallint NOT NULL,
  value_null smallint NOT NULL,
  dlq_id uuid NOT NULL,
  event_id uuid,
  service text COLLATE "C" NOT NULL,
  original_topic text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  claim text,
  claimed_by text,
  record_key bytea,
  facts bytea NOT NULL,
  PRIMARY KEY (letter_id)
) WITH (fillfactor=90, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

CREATE TABLE bartleby.kafka_partitions (
  topic text COLLATE "C" NOT NULL,
  partition integer NOT NULL,
  order_ts bigint NOT NULL,
  next_offset bigint NOT NULL,
  received bigint NOT NULL,
  duplicates bigint NOT NULL,
  created bigint NOT NULL,
  reopened bigint NOT NULL,
  gaps bigint NOT NULL,
  PRIMARY KEY (topic, partition)
);

CREATE TABLE bartleby.kafka_records (
  topic text COLLATE "C" NOT NULL,
  partition integer NOT NULL,
  record_offset bigint NOT NULL,
  fingerprint bytea NOT NULL,
  dlq_id uuid NOT NULL,
  letter_id bigint NOT NULL,
  UNIQUE (dlq_id),
  PRIMARY KEY (topic, partition, record_offset, fingerprint)
);

CREATE TABLE bartleby.kafka_sends (
  event_id uuid NOT NULL,
  letter_id bigint NOT NULL,
  made_at bigint NOT NULL,
  settled_at bigint,
  published_offset bigint,
  published_partition integer,
  resends integer NOT NULL,
  outcome smallint NOT NULL,
  reopened smallint NOT NULL,
  value_kept smallint NOT NULL,
  target text COLLATE "C" NOT NULL,
  digest text NOT NULL,
  actor text NOT NULL,
  request_id text,
  record_key bytea,
  value bytea,
  headers bytea NOT NULL,
  PRIMARY KEY (event_id)
);

CREATE TABLE bartleby.kafka_services (
  service text COLLATE "C" NOT NULL,
  PRIMARY KEY (service)
);

CREATE TABLE bartleby.lease_batches (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  part integer NOT NULL,
  due_at bigint NOT NULL,
  deadline bigint NOT NULL,
  runs text NOT NULL,
  PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.letter_attempts (
  letter_id bigint NOT NULL,
  number integer NOT NULL,
  failed_at bigint NOT NULL,
  superseded_at bigint,
  failed_by text,
  error_class text NOT NULL,
  error_message text NOT NULL,
  error_stack text,
  correlation_id text COLLATE "C",
  reported_count integer,
  PRIMARY KEY (letter_id, number)
);

CREATE TABLE bartleby.letter_changes (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  place integer NOT NULL,
  drawer integer NOT NULL,
  status smallint NOT NULL,
  at bigint NOT NULL,
  letters bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.letter_hours (
  subject integer NOT NULL,
  act smallint NOT NULL,
  at bigint NOT NULL,
  letters bigint NOT NULL,
  PRIMARY KEY (subject, act, at)
) WITH (fillfactor=70);

CREATE TABLE bartleby.letter_minutes (
  act smallint NOT NULL,
  at bigint NOT NULL,
  letters bigint NOT NULL,
  PRIMARY KEY (act, at)
) WITH (fillfactor=70);

CREATE TABLE bartleby.letter_texts (
  letter_id bigint NOT NULL,
  words text NOT NULL,
  PRIMARY KEY (letter_id)
);

CREATE TABLE bartleby.letter_totals (
  drawer integer NOT NULL,
  status smallint NOT NULL,
  letters bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  PRIMARY KEY (drawer, status)
);

CREATE TABLE bartleby.letters (
  id bigint NOT NULL,
  captured_at bigint NOT NULL,
  first_failure_at bigint NOT NULL,
  last_failure_at bigint NOT NULL,
  item_created_at bigint,
  resolved_at bigint,
  confirmed_at bigint,
  laid_at bigint,
  lease_deadline bigint,
  enqueue_at bigint,
  serial bigint,
  part integer,
  drawer integer NOT NULL,
  version integer NOT NULL,
  dequeue_count integer NOT NULL,
  partition integer,
  attempts integer NOT NULL DEFAULT 0,
  status smallint NOT NULL,
  shelf smallint,
  leased smallint NOT NULL DEFAULT 0,
  edited smallint NOT NULL DEFAULT 0,
  engine text COLLATE "C" NOT NULL,
  source_id text COLLATE "C" NOT NULL,
  died_as text COLLATE "C",
  instance_id text COLLATE "C",
  correlation_id text COLLATE "C",
  reason text NOT NULL,
  error_class text NOT NULL,
  error_message text NOT NULL,
  error_stack text,
  failed_by text,
  resolution text,
  resolved_by text,
  notes text,
  sent_as text,
  sent_to text,
  dead_queue text,
  leased_by text,
  encoding bytea,
  kind bytea,
  reference bytea,
  headers bytea,
  payload bytea,
  edited_payload bytea,
  redrive integer,
  edited_encoding bytea,
  edited_kind bytea,
  edited_reference bytea,
  expired_at bigint,
  reported_count integer,
  short_key smallint DEFAULT 1,
  PRIMARY KEY (id)
) WITH (fillfactor=90, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

CREATE TABLE bartleby.letters_to_file (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  first_letter bigint NOT NULL,
  last_letter bigint NOT NULL,
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

CREATE TABLE bartleby.place_totals (
  place integer NOT NULL,
  status smallint NOT NULL,
  letters bigint NOT NULL,
  last_seen_at bigint NOT NULL,
  PRIMARY KEY (place, status)
) WITH (fillfactor=70);

CREATE TABLE bartleby.places (
  id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY,
  source text COLLATE "C" NOT NULL,
  engine text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (source, engine, queue)
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
  holds_letters boolean NOT NULL DEFAULT false,
  on_death text,
  UNIQUE (name),
  PRIMARY KEY (id)
);

CREATE TABLE bartleby.redrive_exceptions (
  redrive integer NOT NULL,
  letter bigint NOT NULL,
  outcome smallint NOT NULL,
  reason text NOT NULL,
  detail text,
  PRIMARY KEY (redrive, letter)
);

CREATE TABLE bartleby.redrive_lanes (
  redrive integer NOT NULL,
  lane integer NOT NULL,
  source text NOT NULL,
  engine text NOT NULL,
  destination text NOT NULL,
  planned bigint NOT NULL,
  sent bigint NOT NULL DEFAULT 0,
  skipped bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  at_captured bigint NOT NULL DEFAULT '-9223372036854775808'::bigint,
  at_letter bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (redrive, lane)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.redrive_letters (
  redrive integer NOT NULL,
  lane integer NOT NULL,
  captured_at bigint NOT NULL,
  letter bigint NOT NULL,
  version integer NOT NULL,
  PRIMARY KEY (redrive, lane, captured_at, letter)
);

CREATE TABLE bartleby.redrive_outcome_deltas (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  redrive integer NOT NULL,
  confirmed bigint NOT NULL,
  returned bigint NOT NULL,
  PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.redrive_outcomes (
  redrive integer NOT NULL,
  confirmed bigint NOT NULL,
  returned bigint NOT NULL,
  PRIMARY KEY (redrive)
);

CREATE TABLE bartleby.redrives (
  number integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  id text COLLATE "C" NOT NULL,
  state text NOT NULL,
  resumes_as text,
  action text NOT NULL,
  queue text,
  selection text NOT NULL,
  numbers text NOT NULL,
  terms text NOT NULL,
  recipe text,
  reason text,
  planned_by text NOT NULL,
  planned_at bigint NOT NULL,
  valid_until bigint NOT NULL,
  started_by text,
  started_at bigint,
  ended_at bigint,
  note text,
  canary_sent_at bigint,
  recent text,
  UNIQUE (id),
  PRIMARY KEY (number)
) WITH (fillfactor=70);

CREATE TABLE bartleby.runs (
  id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  name text COLLATE "C",
  about text NOT NULL,
  subject text NOT NULL,
  place text NOT NULL,
  actor text NOT NULL,
  state text NOT NULL,
  note text,
  started_at bigint NOT NULL,
  ended_at bigint,
  due_at bigint,
  expected bigint,
  done bigint NOT NULL DEFAULT 0,
  skipped bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  rate double precision,
  rate_now double precision,
  resumed integer NOT NULL DEFAULT 0,
  version integer NOT NULL DEFAULT 1,
  owner text,
  owned_until bigint,
  PRIMARY KEY (id)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.secrets (
  name text NOT NULL,
  value bytea NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE bartleby.signatures (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  fingerprint text COLLATE "C" NOT NULL,
  error_class text NOT NULL,
  title text NOT NULL,
  first_seen_at bigint NOT NULL,
  UNIQUE (fingerprint),
  PRIMARY KEY (id)
);

CREATE TABLE bartleby.webhook_channels (
  id text COLLATE "C" NOT NULL,
  number integer NOT NULL DEFAULT nextval('bartleby.webhook_numbers'::regclass),
  channel_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  token text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  UNIQUE (channel_id),
  UNIQUE (number),
  PRIMARY KEY (id)
);

CREATE TABLE bartleby.webhook_consumers (
  id text COLLATE "C" NOT NULL,
  number integer NOT NULL DEFAULT nextval('bartleby.webhook_numbers'::regclass),
  channel integer NOT NULL,
  consumer_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  token text NOT NULL,
  callback_url text NOT NULL,
  pulls smallint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  secret text,
  previous_secret text,
  secret_changed_at bigint,
  most_at_once integer,
  most_per_second double precision,
  paused_since bigint,
  paused_until bigint,
  pause_seconds integer,
  pause_reason text,
  UNIQUE (channel, consumer_id),
  UNIQUE (number),
  PRIMARY KEY (id)
);

CREATE TABLE bartleby.webhook_deltas (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  subject integer NOT NULL,
  tally smallint NOT NULL,
  amount bigint NOT NULL,
  PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE bartleby.webhook_jobs (
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  due_at bigint,
  priority bigint NOT NULL,
  letter bigint,
  consumer integer NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  extra_seconds integer NOT NULL DEFAULT 0,
  state smallint NOT NULL,
  exhausted smallint NOT NULL DEFAULT 0,
  id text COLLATE "C" NOT NULL,
  message text COLLATE "C" NOT NULL,
  claim text,
  PRIMARY KEY (id)
) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_cost_delay=0, vacuum_index_cleanup=on);

CREATE TABLE bartleby.webhook_messages (
  id text COLLATE "C" NOT NULL,
  channel integer NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  producer text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  received_at bigint,
  scheduled_for bigint,
  next_try_at bigint,
  priority bigint NOT NULL,
  first_job text COLLATE "C",
  jobs integer NOT NULL DEFAULT 0,
  tries integer NOT NULL DEFAULT 0,
  content_type text NOT NULL,
  headers text NOT NULL,
  payload bytea NOT NULL,
  UNIQUE (channel, message_id),
  PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05, vacuum_index_cleanup=on);

CREATE TABLE bartleby.webhook_producers (
  id text COLLATE "C" NOT NULL,
  producer_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  token text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (producer_id)
);

CREATE TABLE bartleby.webhook_seed (
  name text NOT NULL,
  hash text NOT NULL,
  applied_at bigint NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE bartleby.webhook_totals (
  subject integer NOT NULL,
  tally smallint NOT NULL,
  amount bigint NOT NULL,
  PRIMARY KEY (subject, tally)
);

CREATE UNIQUE INDEX azure_entity_of_letter ON bartleby.azure_entities USING btree (letter_id) WHERE (is_current = 1);

CREATE INDEX azure_held ON bartleby.azure_entities USING btree (source_id) WHERE (state = ANY (ARRAY[1, 2]));

CREATE INDEX azure_sent ON bartleby.azure_entities USING btree (correlation_id, engine) WHERE (state = ANY (ARRAY[3, 4]));

CREATE INDEX azure_uncertain ON bartleby.azure_entities USING btree (source_id) WHERE (state = 3);

CREATE INDEX azure_writes_due ON bartleby.azure_writes USING btree (due_at);

CREATE INDEX azure_writes_of_letter ON bartleby.azure_writes USING btree (letter_id);

CREATE INDEX azure_writes_oldest ON bartleby.azure_writes USING btree (acted_at);

CREATE INDEX dedupe_keys_until ON bartleby.dedupe_keys USING btree (until);

CREATE INDEX drawers_by_place ON bartleby.drawers USING btree (place, id);

CREATE INDEX drawers_by_signature ON bartleby.drawers USING btree (signature, place);

CREATE INDEX history_by_correlation ON bartleby.history USING btree (correlation_id, created_at, id) WHERE (correlation_id IS NOT NULL);

CREATE INDEX history_by_instance ON bartleby.history USING btree (instance_id, created_at, id) WHERE (instance_id IS NOT NULL);

CREATE INDEX history_of_letter ON bartleby.history USING btree (letter_id, created_at, id) WHERE ((letter_id IS NOT NULL) AND (correlation_id IS NOT NULL));

CREATE INDEX history_sources_created ON bartleby.history_sources USING btree (created_at);

CREATE INDEX idempotency_keys_answered ON bartleby.idempotency_keys USING btree (answered_at);

CREATE UNIQUE INDEX items_by_case ON bartleby.items USING btree (case_id) WHERE (case_id IS NOT NULL);

CREATE UNIQUE INDEX items_by_source ON bartleby.items USING btree (part, source_id) WHERE (source_id IS NOT NULL);

CREATE INDEX items_expiring ON bartleby.items USING btree (expire_at) WHERE ((shelf = 0) AND (expire_at IS NOT NULL));

CREATE INDEX items_held ON bartleby.items USING btree (part, id) WHERE (shelf = 2);

CREATE INDEX items_scheduled ON bartleby.items USING btree (enqueue_at, id) WHERE (shelf = 1);

CREATE UNIQUE INDEX kafka_in_flight ON bartleby.kafka_events USING btree (service) WHERE (state = ANY (ARRAY[1, 2]));

CREATE INDEX kafka_queue ON bartleby.kafka_events USING btree (service, order_ts, topic, partition, record_offset, intake) WHERE (state < 4);

CREATE INDEX kafka_queue_of_topic ON bartleby.kafka_events USING btree (service, original_topic, order_ts, topic, partition, record_offset, intake) WHERE (state < 4);

CREATE INDEX kafka_same_key ON bartleby.kafka_events USING btree (service, original_topic, same_key, order_ts, topic, partition, record_offset, intake) WHERE ((same_key IS NOT NULL) AND (state <> 5));

CREATE INDEX kafka_sends_at ON bartleby.kafka_sends USING btree (target, published_partition, published_offset) WHERE (published_offset IS NOT NULL);

CREATE INDEX kafka_sends_of_letter ON bartleby.kafka_sends USING btree (letter_id);

CREATE INDEX kafka_sends_unplaced ON bartleby.kafka_sends USING btree (target, made_at) WHERE (((published_offset IS NULL) OR (resends > 0)) AND (reopened = 0) AND (outcome <> 3));

CREATE INDEX lease_batches_due ON bartleby.lease_batches USING btree (due_at);

CREATE INDEX letter_attempts_superseded ON bartleby.letter_attempts USING btree (superseded_at) WHERE (superseded_at IS NOT NULL);

CREATE INDEX letter_hours_oldest ON bartleby.letter_hours USING btree (at);

CREATE INDEX letter_minutes_oldest ON bartleby.letter_minutes USING btree (at);

CREATE INDEX letter_texts_words ON bartleby.letter_texts USING gin (words public.gin_trgm_ops);

CREATE INDEX letters_by_correlation ON bartleby.letters USING btree (correlation_id, last_failure_at, id) WHERE (correlation_id IS NOT NULL);

CREATE INDEX letters_by_death ON bartleby.letters USING btree (died_as) WHERE (died_as IS NOT NULL);

CREATE INDEX letters_by_instance ON bartleby.letters USING btree (instance_id, last_failure_at, id) WHERE (instance_id IS NOT NULL);

CREATE UNIQUE INDEX letters_by_short_key ON bartleby.letters USING btree (engine, COALESCE(instance_id, ''::text), captured_at) WHERE ((short_key = 1) AND (instance_id IS NOT NULL));

CREATE UNIQUE INDEX letters_by_source ON bartleby.letters USING btree (engine, source_id);

CREATE INDEX letters_expired ON bartleby.letters USING btree (GREATEST(expired_at, last_failure_at), id) WHERE (status = 2);

CREATE INDEX letters_in_drawer ON bartleby.letters USING btree (drawer, status, last_failure_at, id);

CREATE UNIQUE INDEX letters_lying ON bartleby.letters USING btree (part, shelf, serial) WHERE (part IS NOT NULL);

CREATE INDEX letters_newest ON bartleby.letters USING btree (status, last_failure_at, id);

CREATE INDEX letters_pending_of_key ON bartleby.letters USING btree (engine, instance_id, captured_at, id) WHERE ((status = 0) AND (instance_id IS NOT NULL));

CREATE INDEX letters_resolved ON bartleby.letters USING btree (resolved_at, id) WHERE (status = 1);

CREATE INDEX letters_scheduled ON bartleby.letters USING btree (enqueue_at, serial) WHERE (shelf = 1);

CREATE INDEX letters_unconfirmed ON bartleby.letters USING btree (last_failure_at, id) WHERE ((resolution = 'retry'::text) AND (confirmed_at IS NULL));

CREATE INDEX partition_deltas_by_part ON bartleby.partition_deltas USING btree (part);

CREATE INDEX queues_by_dead_queue ON bartleby.queues USING btree (dead_queue) WHERE (dead_queue IS NOT NULL);

CREATE INDEX redrive_letters_of ON bartleby.redrive_letters USING btree (letter, redrive);

CREATE INDEX redrives_open ON bartleby.redrives USING btree (number) WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX runs_one ON bartleby.runs USING btree (name) WHERE (ended_at IS NULL);

CREATE INDEX runs_open ON bartleby.runs USING btree (started_at) WHERE (ended_at IS NULL);

CREATE INDEX webhook_channels_newest ON bartleby.webhook_channels USING btree (created_at, id);

CREATE INDEX webhook_consumers_newest ON bartleby.webhook_consumers USING btree (channel, created_at, id);

CREATE INDEX webhook_consumers_paused ON bartleby.webhook_consumers USING btree (paused_since) WHERE (paused_since IS NOT NULL);

CREATE INDEX webhook_jobs_by_state ON bartleby.webhook_jobs USING btree (consumer, state, changed_at);

CREATE INDEX webhook_jobs_dead ON bartleby.webhook_jobs USING btree (consumer, created_at, id) WHERE (state = 4);

CREATE INDEX webhook_jobs_in_flight ON bartleby.webhook_jobs USING btree (due_at, id) WHERE (state = 2);

CREATE INDEX webhook_jobs_later ON bartleby.webhook_jobs USING btree (due_at, id) WHERE (state = 0);

CREATE INDEX webhook_jobs_later_of ON bartleby.webhook_jobs USING btree (consumer, priority DESC, created_at, id) WHERE (state = 0);

CREATE INDEX webhook_jobs_ready ON bartleby.webhook_jobs USING btree (consumer, priority DESC, created_at, id) WHERE (state = 1);

CREATE INDEX webhook_messages_due ON bartleby.webhook_messages USING btree (next_try_at, id) WHERE (next_try_at IS NOT NULL);

CREATE INDEX webhook_messages_newest ON bartleby.webhook_messages USING btree (channel, received_at, id) WHERE (received_at IS NOT NULL);

CREATE INDEX webhook_messages_sent_newest ON bartleby.webhook_messages USING btree (channel, created_at, id) WHERE ((scheduled_for IS NOT NULL) AND (received_at IS NOT NULL));

CREATE INDEX webhook_messages_waiting ON bartleby.webhook_messages USING btree (channel, scheduled_for) WHERE (next_try_at IS NOT NULL);

CREATE INDEX webhook_messages_waiting_newest ON bartleby.webhook_messages USING btree (channel, created_at, id) WHERE (next_try_at IS NOT NULL);

CREATE INDEX webhook_producers_newest ON bartleby.webhook_producers USING btree (created_at, id);
