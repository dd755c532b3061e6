-- Written by `npm run schema` from a store after all migrations; do not edit.

CREATE TABLE azure_entities (
  source_id TEXT PRIMARY KEY,
  letter_id INTEGER NOT NULL,
  written_at INTEGER NOT NULL,
  sent_at INTEGER,
  lease_until INTEGER,
  is_current INTEGER NOT NULL,
  state INTEGER NOT NULL,
  engine TEXT NOT NULL,
  queue TEXT,
  correlation_id TEXT NOT NULL,
  partition_key TEXT,
  row_key TEXT,
  etag TEXT,
  claim TEXT
) STRICT;

CREATE UNIQUE INDEX azure_entity_of_letter ON azure_entities (letter_id) WHERE is_current = 1;

CREATE INDEX azure_held ON azure_entities (source_id) WHERE state IN (1, 2);

CREATE INDEX azure_sent ON azure_entities (correlation_id, engine) WHERE state IN (3, 4);

CREATE INDEX azure_uncertain ON azure_entities (source_id) WHERE state = 3;

CREATE TABLE azure_marks (
  name TEXT PRIMARY KEY,
  read_to INTEGER NOT NULL
) STRICT;

CREATE TABLE azure_writes (
  source_id TEXT PRIMARY KEY,
  letter_id INTEGER NOT NULL,
  acted_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  trouble TEXT
) STRICT;

CREATE INDEX azure_writes_due ON azure_writes (due_at);

CREATE INDEX azure_writes_of_letter ON azure_writes (letter_id);

CREATE INDEX azure_writes_oldest ON azure_writes (acted_at);

CREATE TABLE dedupe_keys (
  queue_id INTEGER NOT NULL,
  key BLOB NOT NULL,
  item_id TEXT NOT NULL,
  partition INTEGER NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (queue_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX dedupe_keys_until ON dedupe_keys (until);

CREATE TABLE drawers (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  engine TEXT NOT NULL,
  queue TEXT NOT NULL,
  signature INTEGER NOT NULL, place INTEGER,
  UNIQUE (source, engine, queue, signature)
) STRICT;

CREATE INDEX drawers_by_place ON drawers (place);

CREATE INDEX drawers_by_signature ON drawers (signature, place);

CREATE TABLE dropped_parts (part INTEGER PRIMARY KEY, dropped_at INTEGER NOT NULL) STRICT;

CREATE TABLE engine_queues (
  queue TEXT PRIMARY KEY,
  engine TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE history (
  id INTEGER PRIMARY KEY,
  created_at INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  letter_id INTEGER,
  series INTEGER NOT NULL,
  letter_version INTEGER,
  correlation_id TEXT,
  instance_id TEXT,
  actor TEXT,
  notes TEXT,
  error TEXT,
  input BLOB,
  output BLOB
, short_key INTEGER DEFAULT 1) STRICT;

CREATE INDEX history_by_correlation ON history (correlation_id, created_at) WHERE correlation_id IS NOT NULL;

CREATE INDEX history_by_instance ON history (instance_id, created_at) WHERE instance_id IS NOT NULL;

CREATE INDEX history_in_series ON history (series, created_at);

CREATE INDEX history_of_letter ON history (letter_id, created_at)
WHERE letter_id IS NOT NULL AND correlation_id IS NOT NULL;

CREATE TABLE history_series (
  id INTEGER PRIMARY KEY,
  engine TEXT NOT NULL,
  operation TEXT NOT NULL,
  status INTEGER NOT NULL,
  UNIQUE (engine, operation, status)
) STRICT;

CREATE TABLE history_sources (
  engine TEXT NOT NULL,
  source_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  history_id INTEGER NOT NULL,
  series INTEGER NOT NULL,
  PRIMARY KEY (engine, source_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX history_sources_created ON history_sources (created_at);

CREATE TABLE idempotency_keys (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  answered_at INTEGER NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_answered ON idempotency_keys (answered_at);

CREATE TABLE items (
  id INTEGER PRIMARY KEY,
  part INTEGER NOT NULL,
  shelf INTEGER NOT NULL,
  leased INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lease_deadline INTEGER,
  created_at INTEGER NOT NULL,
  expire_at INTEGER,
  enqueue_at INTEGER,
  max_attempts INTEGER,
  encoding BLOB,
  kind BLOB,
  reference BLOB,
  source_id BLOB,
  payload BLOB
, case_id INTEGER) STRICT;

CREATE UNIQUE INDEX items_by_case ON items (case_id) WHERE case_id IS NOT NULL;

CREATE UNIQUE INDEX items_by_source ON items (part, source_id) WHERE source_id IS NOT NULL;

CREATE INDEX items_expiring ON items (expire_at) WHERE shelf = 0 AND expire_at IS NOT NULL;

CREATE INDEX items_held ON items (part) WHERE shelf = 2;

CREATE INDEX items_in_order ON items (part, shelf);

CREATE INDEX items_scheduled ON items (enqueue_at) WHERE shelf = 1;

CREATE TABLE kafka_chain (
  letter_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  record_offset INTEGER NOT NULL,
  record_ts INTEGER NOT NULL,
  superseded_at INTEGER NOT NULL,
  partition INTEGER NOT NULL,
  value_null INTEGER NOT NULL,
  dlq_id TEXT NOT NULL,
  event_id TEXT,
  topic TEXT NOT NULL,
  facts BLOB NOT NULL,
  record_key BLOB,
  headers BLOB,
  value BLOB,
  PRIMARY KEY (letter_id, number)
) STRICT;

CREATE TABLE kafka_events (
  letter_id INTEGER PRIMARY KEY,
  order_ts INTEGER NOT NULL,
  record_offset INTEGER NOT NULL,
  intake INTEGER NOT NULL,
  record_ts INTEGER NOT NULL,
  same_key INTEGER,
  lease_until INTEGER,
  partition INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  state INTEGER NOT NULL,
  value_null INTEGER NOT NULL,
  dlq_id TEXT NOT NULL,
  event_id TEXT,
  service TEXT NOT NULL,
  original_topic TEXT NOT NULL,
  topic TEXT NOT NULL,
  claim TEXT,
  claimed_by TEXT,
  record_key BLOB,
  facts BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX kafka_in_flight ON kafka_events (service) WHERE state IN (1, 2);

CREATE INDEX kafka_queue ON kafka_events (service, order_ts, topic, partition, record_offset, intake) WHERE state < 4;

CREATE INDEX kafka_queue_of_topic ON kafka_events (service, original_topic, order_ts, topic, partition, record_offset, intake) WHERE state < 4;

CREATE INDEX kafka_same_key ON kafka_events (service, original_topic, same_key, order_ts, topic, partition, record_offset, intake) WHERE same_key IS NOT NULL AND state <> 5;

CREATE TABLE kafka_partitions (
  topic TEXT NOT NULL,
  partition INTEGER NOT NULL,
  order_ts INTEGER NOT NULL,
  next_offset INTEGER NOT NULL,
  received INTEGER NOT NULL,
  duplicates INTEGER NOT NULL,
  created INTEGER NOT NULL,
  reopened INTEGER NOT NULL,
  gaps INTEGER NOT NULL,
  PRIMARY KEY (topic, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE kafka_records (
  topic TEXT NOT NULL,
  partition INTEGER NOT NULL,
  record_offset INTEGER NOT NULL,
  fingerprint BLOB NOT NULL,
  dlq_id TEXT NOT NULL UNIQUE,
  letter_id INTEGER NOT NULL,
  PRIMARY KEY (topic, partition, record_offset, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE kafka_sends (
  event_id TEXT PRIMARY KEY,
  letter_id INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  settled_at INTEGER,
  published_offset INTEGER,
  published_partition INTEGER,
  resends INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  reopened INTEGER NOT NULL,
  value_kept INTEGER NOT NULL,
  target TEXT NOT NULL,
  digest TEXT NOT NULL,
  actor TEXT NOT NULL,
  request_id TEXT,
  record_key BLOB,
  value BLOB,
  headers BLOB NOT NULL
) STRICT;

CREATE INDEX kafka_sends_at ON kafka_sends (target, published_partition, published_offset) WHERE published_offset IS NOT NULL;

CREATE INDEX kafka_sends_of_letter ON kafka_sends (letter_id);

CREATE INDEX kafka_sends_unplaced ON kafka_sends (target, made_at) WHERE (published_offset IS NULL OR resends > 0) AND reopened = 0 AND outcome <> 3;

CREATE TABLE kafka_services (service TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE lease_batches (
  id INTEGER PRIMARY KEY,
  part INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  deadline INTEGER NOT NULL,
  runs TEXT NOT NULL
) STRICT;

CREATE INDEX lease_batches_due ON lease_batches (due_at);

CREATE TABLE letter_attempts (
  letter_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  failed_at INTEGER NOT NULL,
  superseded_at INTEGER,
  failed_by TEXT,
  error_class TEXT NOT NULL,
  error_message TEXT NOT NULL,
  error_stack TEXT,
  correlation_id TEXT, reported_count INTEGER,
  PRIMARY KEY (letter_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX letter_attempts_superseded ON letter_attempts (superseded_at) WHERE superseded_at IS NOT NULL;

CREATE TABLE letter_hours (
  subject INTEGER NOT NULL,
  act INTEGER NOT NULL,
  at INTEGER NOT NULL,
  letters INTEGER NOT NULL,
  PRIMARY KEY (subject, act, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX letter_hours_oldest ON letter_hours (at);

CREATE TABLE letter_minutes (
  act INTEGER NOT NULL,
  at INTEGER NOT NULL,
  letters INTEGER NOT NULL,
  PRIMARY KEY (act, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX letter_minutes_oldest ON letter_minutes (at);

CREATE VIRTUAL TABLE letter_texts USING fts5 (words, tokenize = 'trigram', content = '', contentless_delete = 1);

CREATE TABLE letter_totals (
  drawer INTEGER NOT NULL,
  status INTEGER NOT NULL,
  letters INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (drawer, status)
) STRICT, WITHOUT ROWID;

CREATE TABLE letters (
  id INTEGER PRIMARY KEY,
  captured_at INTEGER NOT NULL,
  first_failure_at INTEGER NOT NULL,
  last_failure_at INTEGER NOT NULL,
  item_created_at INTEGER,
  resolved_at INTEGER,
  confirmed_at INTEGER,
  laid_at INTEGER,
  lease_deadline INTEGER,
  enqueue_at INTEGER,
  serial INTEGER,
  part INTEGER,
  drawer INTEGER NOT NULL,
  version INTEGER NOT NULL,
  dequeue_count INTEGER NOT NULL,
  partition INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  status INTEGER NOT NULL,
  shelf INTEGER,
  leased INTEGER NOT NULL DEFAULT 0,
  edited INTEGER NOT NULL DEFAULT 0,
  engine TEXT NOT NULL,
  source_id TEXT NOT NULL,
  died_as TEXT,
  instance_id TEXT,
  correlation_id TEXT,
  reason TEXT NOT NULL,
  error_class TEXT NOT NULL,
  error_message TEXT NOT NULL,
  error_stack TEXT,
  failed_by TEXT,
  resolution TEXT,
  resolved_by TEXT,
  notes TEXT,
  sent_as TEXT,
  sent_to TEXT,
  dead_queue TEXT,
  leased_by TEXT,
  encoding BLOB,
  kind BLOB,
  reference BLOB,
  headers BLOB,
  payload BLOB,
  edited_payload BLOB
, redrive INTEGER, edited_encoding BLOB, edited_kind BLOB, edited_reference BLOB, expired_at INTEGER, reported_count INTEGER, short_key INTEGER DEFAULT 1) STRICT;

CREATE INDEX letters_by_correlation ON letters (correlation_id, last_failure_at) WHERE correlation_id IS NOT NULL;

CREATE INDEX letters_by_death ON letters (died_as) WHERE died_as IS NOT NULL;

CREATE INDEX letters_by_instance ON letters (instance_id, last_failure_at) WHERE instance_id IS NOT NULL;

CREATE UNIQUE INDEX letters_by_short_key ON letters (engine, coalesce(instance_id, ''), captured_at)
WHERE short_key = 1 AND instance_id IS NOT NULL;

CREATE UNIQUE INDEX letters_by_source ON letters (engine, source_id);

CREATE INDEX letters_expired ON letters (max(expired_at, last_failure_at)) WHERE status = 2;

CREATE INDEX letters_in_drawer ON letters (drawer, status, last_failure_at);

CREATE UNIQUE INDEX letters_lying ON letters (part, shelf, serial) WHERE part IS NOT NULL;

CREATE INDEX letters_newest ON letters (status, last_failure_at);

CREATE INDEX letters_pending_of_key ON letters (engine, instance_id, captured_at)
WHERE status = 0 AND instance_id IS NOT NULL;

CREATE INDEX letters_resolved ON letters (resolved_at) WHERE status = 1;

CREATE INDEX letters_scheduled ON letters (enqueue_at, serial) WHERE shelf = 1;

CREATE INDEX letters_unconfirmed ON letters (last_failure_at) WHERE resolution = 'retry' AND confirmed_at IS NULL;

CREATE TABLE letters_to_file (
  id INTEGER PRIMARY KEY,
  first_letter INTEGER NOT NULL,
  last_letter INTEGER NOT NULL
) STRICT;

CREATE TABLE locks (name TEXT PRIMARY KEY, owner TEXT NOT NULL, deadline INTEGER NOT NULL) STRICT;

CREATE TABLE migrations (
number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);

CREATE TABLE partition_totals (
  part INTEGER PRIMARY KEY,
  ready INTEGER NOT NULL, leased INTEGER NOT NULL, scheduled INTEGER NOT NULL, held INTEGER NOT NULL, dead INTEGER NOT NULL,
  created_s INTEGER NOT NULL, created_us INTEGER NOT NULL, deadline_s INTEGER NOT NULL, deadline_us INTEGER NOT NULL
) STRICT;

CREATE TABLE partitions (
  part INTEGER PRIMARY KEY,
  queue_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  id_prefix TEXT NOT NULL,
  UNIQUE (queue_id, number)
) STRICT;

CREATE TABLE place_totals (
  place INTEGER NOT NULL,
  status INTEGER NOT NULL,
  letters INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (place, status)
) STRICT, WITHOUT ROWID;

CREATE TABLE places (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  engine TEXT NOT NULL,
  queue TEXT NOT NULL,
  UNIQUE (source, engine, queue)
) STRICT;

CREATE TABLE queues (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL DEFAULT 1,
  namespace TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  lease_timeout_ns INTEGER NOT NULL,
  expire_timeout_ns INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  requested_partitions INTEGER NOT NULL,
  dead_queue TEXT,
  reference BLOB
, holds_letters INTEGER NOT NULL DEFAULT 0, on_death TEXT) STRICT;

CREATE INDEX queues_by_dead_queue ON queues (dead_queue) WHERE dead_queue IS NOT NULL;

CREATE TABLE redrive_exceptions (
  redrive INTEGER NOT NULL,
  letter INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT,
  PRIMARY KEY (redrive, letter)
) STRICT, WITHOUT ROWID;

CREATE TABLE redrive_lanes (
  redrive INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  source TEXT NOT NULL,
  engine TEXT NOT NULL,
  destination TEXT NOT NULL,
  planned INTEGER NOT NULL,
  sent INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  at_captured INTEGER NOT NULL DEFAULT (-9223372036854775807),
  at_letter INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (redrive, lane)
) STRICT, WITHOUT ROWID;

CREATE TABLE redrive_letters (
  redrive INTEGER NOT NULL,
  lane INTEGER NOT NULL,
  captured_at INTEGER NOT NULL,
  letter INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (redrive, lane, captured_at, letter)
) STRICT, WITHOUT ROWID;

CREATE INDEX redrive_letters_of ON redrive_letters (letter, redrive);

CREATE TABLE redrive_outcomes (
  redrive INTEGER PRIMARY KEY,
  confirmed INTEGER NOT NULL,
  returned INTEGER NOT NULL
) STRICT;

CREATE TABLE redrives (
-- Never given a second time: letters keep the number of a redrive that was forgotten.
number INTEGER PRIMARY KEY AUTOINCREMENT,
id TEXT NOT NULL UNIQUE,
state TEXT NOT NULL,
resumes_as TEXT,
action TEXT NOT NULL,
queue TEXT,
selection TEXT NOT NULL,
numbers TEXT NOT NULL,
terms TEXT NOT NULL,
recipe TEXT,
reason TEXT,
planned_by TEXT NOT NULL,
planned_at INTEGER NOT NULL,
valid_until INTEGER NOT NULL,
started_by TEXT,
started_at INTEGER,
ended_at INTEGER,
note TEXT,
canary_sent_at INTEGER,
recent TEXT) STRICT;

CREATE INDEX redrives_open ON redrives (number) WHERE ended_at IS NULL;

CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT,
  about TEXT NOT NULL,
  subject TEXT NOT NULL,
  place TEXT NOT NULL,
  actor TEXT NOT NULL,
  state TEXT NOT NULL,
  note TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  due_at INTEGER,
  expected INTEGER,
  done INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  rate REAL,
  rate_now REAL,
  resumed INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 1,
  owner TEXT,
  owned_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX runs_one ON runs (name) WHERE ended_at IS NULL;

CREATE INDEX runs_open ON runs (started_at) WHERE ended_at IS NULL;

CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE serials (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE signatures (
  id INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL UNIQUE,
  error_class TEXT NOT NULL,
  title TEXT NOT NULL,
  first_seen_at INTEGER NOT NULL
) STRICT;

CREATE TABLE webhook_channels (
  id TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE,
  channel_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_channels_newest ON webhook_channels (created_at, id);

CREATE TABLE webhook_consumers (
  id TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE,
  channel INTEGER NOT NULL,
  consumer_id TEXT NOT NULL,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  callback_url TEXT NOT NULL,
  pulls INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  secret TEXT,
  previous_secret TEXT,
  secret_changed_at INTEGER,
  most_at_once INTEGER,
  most_per_second REAL,
  paused_since INTEGER,
  paused_until INTEGER,
  pause_seconds INTEGER,
  pause_reason TEXT,
  UNIQUE (channel, consumer_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_consumers_newest ON webhook_consumers (channel, created_at, id);

CREATE INDEX webhook_consumers_paused ON webhook_consumers (paused_since) WHERE paused_since IS NOT NULL;

CREATE TABLE webhook_jobs (
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  due_at INTEGER,
  priority INTEGER NOT NULL,
  letter INTEGER,
  consumer INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  extra_seconds INTEGER NOT NULL DEFAULT 0,
  state INTEGER NOT NULL,
  exhausted INTEGER NOT NULL DEFAULT 0,
  id TEXT NOT NULL PRIMARY KEY,
  message TEXT NOT NULL,
  claim TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_jobs_by_state ON webhook_jobs (consumer, state, changed_at);

CREATE INDEX webhook_jobs_dead ON webhook_jobs (consumer, created_at, id) WHERE state = 4;

CREATE INDEX webhook_jobs_in_flight ON webhook_jobs (due_at, id) WHERE state = 2;

CREATE INDEX webhook_jobs_later ON webhook_jobs (due_at, id) WHERE state = 0;

CREATE INDEX webhook_jobs_later_of ON webhook_jobs (consumer, priority DESC, created_at, id) WHERE state = 0;

CREATE INDEX webhook_jobs_ready ON webhook_jobs (consumer, priority DESC, created_at, id) WHERE state = 1;

CREATE TABLE webhook_messages (
  id TEXT NOT NULL PRIMARY KEY,
  channel INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  producer TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  received_at INTEGER,
  scheduled_for INTEGER,
  next_try_at INTEGER,
  priority INTEGER NOT NULL,
  first_job TEXT,
  jobs INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  content_type TEXT NOT NULL,
  headers TEXT NOT NULL,
  payload BLOB NOT NULL,
  UNIQUE (channel, message_id)
) STRICT;

CREATE INDEX webhook_messages_due ON webhook_messages (next_try_at, id) WHERE next_try_at IS NOT NULL;

CREATE INDEX webhook_messages_newest ON webhook_messages (channel, received_at, id) WHERE received_at IS NOT NULL;

CREATE INDEX webhook_messages_sent_newest ON webhook_messages (channel, created_at, id)
WHERE scheduled_for IS NOT NULL AND received_at IS NOT NULL;

CREATE INDEX webhook_messages_waiting ON webhook_messages (channel, scheduled_for) WHERE next_try_at IS NOT NULL;

CREATE INDEX webhook_messages_waiting_newest ON webhook_messages (channel, created_at, id) WHERE next_try_at IS NOT NULL;

CREATE TABLE webhook_numbers (last INTEGER NOT NULL) STRICT;

CREATE TABLE webhook_producers (
  id TEXT PRIMARY KEY,
  producer_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_producers_newest ON webhook_producers (created_at, id);

CREATE TABLE webhook_seed (
  name TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_totals (
  subject INTEGER NOT NULL,
  tally INTEGER NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (subject, tally)
) STRICT, WITHOUT ROWID;
