/**
 * What the plans of all statements on PostgreSQL must be like: which may sort or read something from end to end, and by which index
 * the others find their rows.
 */
import { BITMAPS } from './explain.ts'
import { KAFKA_SCANNED, KAFKA_SORTED } from './kafka-plans.ts'
import { REDRIVE_SCANNED, REDRIVE_SORTED } from './redrive-plans.ts'
import { WEBHOOKS_SCANNED, WEBHOOKS_SORTED } from './webhook-plans.ts'

/** Statements that may sort, and why that is little. */
export const SORTED: Readonly<Record<string, string>> = {
  ...WEBHOOKS_SORTED,
  ...KAFKA_SORTED,
  ...REDRIVE_SORTED,
  'history.insertMany': 'the entries of one call',
  'letters.recordReopened': 'the letters that one call reopens',
  'history.bySeries': 'the keys of a page of each series that was asked for',
  'history.remove': 'the oldest of each series, as many as one batch takes',
  'letters.newest': 'a page of each status',
  'letters.newestInDrawers': 'the head of every lane, then a page of each of the lanes of one page',
  'walk.reopened': 'what was reopened since one walk began',
  'search.among': 'the candidates of one search, whose number is bounded',
  'counts.fold': 'the sums of one batch of deltas',
  'letterCounts.fold': 'the sums of one batch of deltas',
  'letterActivity.fold': 'the sums of one batch of deltas',
}

/** Statements that may read something from end to end, and why that stays small. */
export const SCANNED: Readonly<Record<string, string>> = {
  ...WEBHOOKS_SCANNED,
  ...KAFKA_SCANNED,
  ...REDRIVE_SCANNED,
  'engineQueues.readAll': 'there is a row for each queue of an engine, and those are few',
  'office.ping': 'counts the migrations, of which there is a handful',
  'migrations.version': 'reads the migrations, of which there is a handful',
  'due.held': 'its partial index holds nothing but the items it looks for',
  'purge.read': 'its table holds nothing but the partitions of queues that were just deleted',
  'purge.batches': 'runs in the background, for the partitions of a deleted queue',
  'letterCounts.read': 'one total per drawer and status, and the changes that were not folded yet',
  'letterCounts.standing': 'the same',
  'letterActivity.series': 'the changes that were not folded yet',
  'letterActivity.ofDrawers': 'the changes that were not folded yet',
  'letterActivity.ever': 'the changes that were not folded yet',
  'letterActivity.first': 'the changes that were not folded yet',
  'letterActivity.sums': 'the changes that were not folded yet; the rest is a row per drawer and activity',
  'history.remove': 'series are few, see the next',
  'history.labels': 'there is a series for each operation and outcome, however many rows it has',
  'signatures.highest': 'stops at the first entry of the index',
  'drawers.labels': 'drawers are few',
  'drawers.matching': 'drawers are few',
  'search.unfiled': 'stops at its limit',
  [BITMAPS]: 'its index of trigrams can only be read as a bitmap',
}

/**
 * The index that a statement must find its letters or history by, and the last of its columns that must bound the
 * search, however empty the store was that it was planned on.
 */
export const INDEXES: Readonly<Record<string, readonly string[]>> = {
  'letters_pkey id': [
    'history.plainLetter',
    'letters.read',
    'letters.lock',
    'letters.summaries',
    'letters.facts',
    'letters.lockCases',
    'letters.transition',
    'letters.failureOnFile',
    'letters.failAgain',
    'letters.confirm',
    'letters.reopenMany',
    'letters.recordReopened',
    'letters.keepFailures',
    'letters.expireBatch',
    'letters.remove',
    'letterTexts.ofLetters',
    'letterTexts.ofRange',
    'lying.lift',
    'lying.lay',
    'lying.resolve',
    'cases.close',
    'search.among',
    'search.unfiled',
    'walk.reopened',
  ],
  'letters_by_source source_id': [
    'history.plainLetterOf',
    'letters.bySource',
    'letters.ofQueueItem',
    'letters.capture',
    'items.bury',
    'lying.holders',
  ],
  'letters_by_row_key captured_at': ['letters.byRowKey', 'letters.takenKey'],
  'letters_by_instance last_failure_at': ['letters.ofInstance'],
  'letters_by_correlation last_failure_at': ['letters.ofCorrelation'],
  'letters_in_drawer last_failure_at': [
    'letters.newestInDrawers',
    'letters.countInDrawers',
    'letters.nextToExpireInDrawer',
  ],
  'letters_in_drawer status': ['letters.samples'],
  'letters_newest last_failure_at': [
    'letters.newest',
    'letters.countNewest',
    'letters.nextToExpire',
    'letters.nextToRemove.expired',
  ],
  'letters_unconfirmed last_failure_at': ['letters.unconfirmed'],
  'letter_activity_pkey at': ['letterActivity.series', 'letterActivity.ofDrawers', 'letterActivity.ever'],
  'letter_activity_pkey act': ['letterActivity.first'],
  'letter_minutes_oldest at': ['letterActivity.remove.letter_minutes_oldest'],
  'letter_hours_oldest at': ['letterActivity.remove.letter_hours_oldest'],
  'letters_resolved resolved_at': ['letters.nextToRemove.resolved'],
  'letters_lying serial': [
    'lying.lockFacts',
    'lying.ready',
    'lying.lease',
    'lying.extend',
    'lying.shelf',
    'lying.resolve',
    'lying.toTail',
    'lying.toPart',
    'lying.toSchedule',
  ],
  'letters_lying shelf': ['lying.heads'],
  'letters_newest status': ['letters.oldestPending', 'letters.oldestPendingAt'],
  'letter_activity_pkey grain': ['letterActivity.sums'],
  'letters_scheduled enqueue_at': ['lying.due'],
  'items_pkey shelf': ['items.heads'],
  'partitions_queue_id_number_key queue_id': ['queues.partitionsOf'],
  'letter_attempts_superseded superseded_at': ['walk.reopened'],
  'idempotency_keys_pkey key': ['idempotency.read'],
  'idempotency_keys_answered answered_at': ['idempotency.remove'],
  'history_pkey id': ['history.updateRun', 'history.bySource', 'history.bySeries'],
  'history_pkey created_at': [
    'history.newestOfSeries',
    'history.remove',
    'history.bySeries',
    'history.plainCapture',
  ],
  'history_by_correlation created_at': [
    'history.byKey',
    'history.byCorrelation',
    'history.byDefaultInstance',
    'history.insertMany',
    'letters.recordReopened',
  ],
  'history_by_instance created_at': ['history.byInstance'],
  'history_of_letter letter_id': ['history.ofLetter'],
  'items_by_source source_id': ['items.bury'],
  'items_by_case case_id': ['items.waitForCase'],
  'letter_attempts_pkey letter_id': ['letters.failureOnFile'],
}
