/**
 * What the plans of redrives on PostgreSQL must be like: which statements may sort or read something from end to end, and by which
 * index the others find their rows.
 */

/** Statements that may sort, and why that is little. */
export const REDRIVE_SORTED: Readonly<Record<string, string>> = {
  'redriveExceptions.count': 'a row for each reason',
  'redriveOutcomes.fold': 'the sums of one batch of deltas',
}

/** Statements that may read something from end to end, and why that stays small. */
export const REDRIVE_SCANNED: Readonly<Record<string, string>> = {
  'redriveOutcomes.read': 'changes that were not folded yet have no index: they are folded every second',
  'redrives.open': 'its partial index holds nothing but redrives that have not ended',
  'redrives.old': 'redrives are few, and it stops at its limit',
}

/** The index that a statement must find its rows by, and the last of its columns that must bound the search, if any. */
export const REDRIVE_INDEXES: Readonly<Record<string, readonly string[]>> = {
  'letters_pkey id': [
    'letters.candidates',
    'letters.lockCandidates',
    'letters.contents',
    'letters.digests',
    'letters.contentBytes',
    'letters.keepEdits',
    'letters.intend',
    'letters.forgo',
    'items.insertOfLetters',
  ],
  'letters_pending_of_key instance_id': ['letters.firstOfKeys', 'redrive.firstOutside'],
  'history_by_correlation created_at': ['letters.discard'],
  'history_of_letter letter_id': ['letters.sentForRedrive'],
  'redrive_letters_of letter': ['redriveLetters.ahead', 'redrive.firstOutside'],
  'redrive_letters_pkey letter': ['redriveLetters.next', 'redriveLetters.page'],
  'redrive_letters_pkey redrive': ['redrives.forget.redrive_letters'],
  'redrive_lanes_pkey lane': [
    'redriveLanes.lock',
    'redriveLanes.advance',
    'redriveLetters.ahead',
    'redriveLetters.page',
  ],
  'redrive_lanes_pkey redrive': [
    'redriveLanes.read',
    'redriveLanes.lockAll',
    'redrives.forget.redrive_lanes',
  ],
  'redrive_exceptions_pkey letter': ['redriveExceptions.read'],
  'redrive_exceptions_pkey redrive': ['redriveExceptions.count', 'redrives.forget.redrive_exceptions'],
  'redrive_outcomes_pkey redrive': ['redriveOutcomes.read', 'redrives.forget.redrive_outcomes'],
  'redrives_id_key id': ['redrives.read', 'redrives.lock', 'redrives.page'],
  'redrives_pkey number': [
    'redrives.plan',
    'redrives.readByNumber',
    'redrives.change',
    'redrives.hide',
    'redrives.remove',
  ],
  'queues_name_key name': ['redrive.queueExists', 'queues.keep'],
}
