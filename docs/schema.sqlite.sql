-- Written by `npm run schema` from a store after all migrations; do not edit.

CREATE TABLE dedupe_keys (
  queue_id INTEGER NOT NULL,
  key BLOB NOT NULL,
  item_id TEXT NOT NULL,
  partition INTEGER NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (queue_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX dedupe_keys_until ON dedupe_keys (until);

CREATE TABLE dropped_parts (part INTEGER PRIMARY KEY, dropped_at INTEGER NOT NULL) STRICT;

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
  died_at INTEGER,
  death_reason TEXT,
  death_queue TEXT,
  death_partition INTEGER,
  death_attempts INTEGER,
  death_created_at INTEGER,
  payload BLOB
) STRICT;

CREATE UNIQUE INDEX items_by_source ON items (part, source_id) WHERE source_id IS NOT NULL;

CREATE INDEX items_expiring ON items (expire_at) WHERE shelf = 0 AND expire_at IS NOT NULL;

CREATE INDEX items_held ON items (part) WHERE shelf = 2;

CREATE INDEX items_in_order ON items (part, shelf);

CREATE INDEX items_scheduled ON items (enqueue_at) WHERE shelf = 1;

CREATE TABLE lease_batches (
  id INTEGER PRIMARY KEY,
  part INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  deadline INTEGER NOT NULL,
  runs TEXT NOT NULL
) STRICT;

CREATE INDEX lease_batches_due ON lease_batches (due_at);

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
) STRICT;

CREATE INDEX queues_by_dead_queue ON queues (dead_queue) WHERE dead_queue IS NOT NULL;

CREATE TABLE serials (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
