/**
 * What the plans of redrives on SQLite must be like: which statements may sort or read something from end to end, and by which index
 * the others find their rows.
 */

/** Statements that may sort, and why that is little. */
export const REDRIVE_SORTED: Readonly<Record<string, string>> = {
  'redriveExceptions.count': 'a row for each reason',
}

/** Statements that may read something from end to end, and why that stays small. */
export const REDRIVE_SCANNED: Readonly<Record<string, string>> = {
  'redrives.open': 'its partial index holds nothing but redrives that have not ended',
  'redrives.old': 'redrives are few, and it stops at its limit',
}

/** The index that a statement must find its rows by. */
export const REDRIVE_INDEXES: Readonly<Record<string, readonly string[]>> = {
  'INTEGER PRIMARY KEY': [
    'letters.candidates',
    'letters.lockCandidates',
    'letters.contents',
    'letters.plannable',
    'outbox.departingLetters',
    'letters.contentBytes',
    'letters.keepEdits',
    'letters.intend',
    'letters.forgo',
    'items.insertOfLetters',
    'redriveOutcomes.read',
    'redrives.plan',
    'redrives.readByNumber',
    'redrives.change',
    'redrives.hide',
    'redrives.remove',
    'redrives.forget.redrive_outcomes',
  ],
  letters_pending_of_key: ['letters.firstOfKeys', 'redrive.firstOutside'],
  history_of_letter: ['letters.sentForRedrive'],
  redrive_letters_of: ['redriveLetters.member', 'redrive.firstOutside'],
  'PRIMARY KEY': [
    'redriveLanes.read',
    'redriveLanes.lock',
    'redriveLanes.advance',
    'redriveLetters.next',
    'redriveLetters.page',
    'redriveLetters.takeOut',
    'redriveExceptions.read',
    'redriveExceptions.count',
    'redrives.forget.redrive_letters',
    'redrives.forget.redrive_exceptions',
    'redrives.forget.redrive_lanes',
  ],
  sqlite_autoindex_redrives_1: ['redrives.read', 'redrives.lock', 'redrives.page'],
}
