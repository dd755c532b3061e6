/** Every statement of redrives on PostgreSQL with values that make a scan of the tables show, as load-redrives.ts fills them. */
import { type Argument, type Calls, LATER, list, NOW, range } from './explain.ts'
import { LARGE_REDRIVE, OPEN, redriveId, SMALL_REDRIVE } from './load-redrives.ts'

const LAST = '~'

/** Letters of the large redrive, with the instants of their captures. */
const some = range(111, 20, 2)
const captures = some.map((letter) => NOW + BigInt(letter))
const letters = list(some)
const firstAndLast = [NOW + 111n, 111, NOW + 149n, 149]
const of = (value: Argument) => list(some.map(() => value))
/** Pending letters of engines: see the states of the load. */
const pending = range(7, 20, 20)
/** Keys whose letters are not in it. */
const keys = list(range(7, 20, 40).map((n) => `instance-${n}`))

/** Calls and their values. */
export const REDRIVE_CALLS: Calls = {
  'redrives.insert': [redriveId(9_999), 'retry', null, '{}', '{}', '{}', null, null, 'nell', NOW],
  'redrives.plan': [SMALL_REDRIVE, 'planned', '{}', NOW, LATER],
  'redrives.read': [redriveId(LARGE_REDRIVE)],
  'redrives.readByNumber': [LARGE_REDRIVE],
  'redrives.lock': [redriveId(LARGE_REDRIVE)],
  'redrives.page': [LAST, '{done,running}', 25],
  'redrives.open': [],
  'redrives.change': [SMALL_REDRIVE, 'paused', 'running', '{}', null, null, NOW, null, null, null],
  'redrives.hide': [SMALL_REDRIVE],
  'redrives.remove': [SMALL_REDRIVE],
  'redrives.old': [NOW, NOW],
  'redrives.forget.redrive_letters': [LARGE_REDRIVE, 20],
  'redrives.forget.redrive_exceptions': [LARGE_REDRIVE, 20],
  'redrives.forget.redrive_lanes': [LARGE_REDRIVE],
  'redrives.forget.redrive_outcomes': [LARGE_REDRIVE],

  'redriveLanes.insert': [LARGE_REDRIVE, 9, 'engines', 'engine-1', 'queue-1', 5],
  'redriveLanes.read': [list(OPEN)],
  'redriveLanes.lockAll': [LARGE_REDRIVE],
  'redriveLanes.lock': [LARGE_REDRIVE, 3],
  'redriveLanes.advance': [LARGE_REDRIVE, 3, 1, 1, 1, NOW, 500],

  'redriveLetters.insert': [of(0), list(captures), letters, of(1), 9_999],
  'redriveLetters.next': [LARGE_REDRIVE, 3, NOW + 500n, 500, 20],
  'redriveLetters.page': [LARGE_REDRIVE, 2, NOW + 500n, 500, 20],
  'redriveLetters.member': [letters, of(LARGE_REDRIVE)],
  'redriveLetters.takeOut': [LARGE_REDRIVE, 3, ...firstAndLast, letters],

  'redriveExceptions.insert': [letters, of(0), of('changed'), of('detail'), 9_999],
  'redriveExceptions.read': [LARGE_REDRIVE, letters],
  'redriveExceptions.count': [SMALL_REDRIVE],

  'redriveOutcomes.add': [LARGE_REDRIVE, 1, 0],
  'redriveOutcomes.addAll': [list([LARGE_REDRIVE]), '{1}', '{0}'],
  'redriveOutcomes.correct.redrive_outcomes': [LARGE_REDRIVE, 1, 0],
  'redriveOutcomes.forgetDeltas': [list([LARGE_REDRIVE])],
  'redriveOutcomes.forget.redrive_outcomes': [list([LARGE_REDRIVE])],
  'redriveOutcomes.read': [list(OPEN)],
  'redriveOutcomes.fold': [1_000, 0, 'redrives.outcomeFold', 'owner', LATER, NOW],

  'redrive.queueExists': ['queue-7'],
  'redrive.firstOutside': [keys, LARGE_REDRIVE, 'engine-2'],

  'letters.candidates': [letters],
  'letters.lockCandidates': [letters],
  'letters.firstOfKeys': [keys, of(2), 'engine-2'],
  'letters.contents': [letters],
  'letters.plannable': [letters],
  'outbox.departingLetters': [letters],
  'letters.contentBytes': [letters],
  'letters.keepEdits': [list(pending), list(pending.map(() => '"\\\\x7b7d"')), '{}', '{}', '{}'],
  'letters.intend': [list(pending), LARGE_REDRIVE],
  'letters.forgo': [list(pending)],
  'letters.sentForRedrive': [500, 1, '"redrive":"c"'],
  'items.insertOfLetters': [list(pending), list(pending.map((id) => 9_000_000 + id)), 7, NOW, LATER],
  'queues.keep': ['queue-7'],
}
