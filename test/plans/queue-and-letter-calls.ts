/** Statements of queues, letters and history on PostgreSQL with values that make a scan of the tables show, as load*.ts fill them. */
import { KSUID_LENGTH } from '../../src/core/ksuid.ts'
import { type GivenRow, givenByKey } from '../../src/store/idioms.ts'
import { deathNote, deathNotes } from './death-notes.ts'
import { type Argument, type Calls, giving, HIGHEST, LOWEST, list, NOW, named, range } from './explain.ts'
import { LEASED, PART } from './load.ts'
import { DEAD_PART, DRAWERS, SERIES } from './load-letters.ts'

const DAY = 86_400_000_000n

const EVERY_SERIES = list(range(1, SERIES + 1))
const EVERY_PLACE = list(range(1, 50))
const lanes = range(0, 60)
/** Not those that lists are read from: what is written is rolled back and stays in the indexes for a while. */
const many = range(501, 499)
/** Pending ones, and those that lie in a dead queue, see load-letters.ts. */
const pending = range(26, 20).map((i) => i * 20 + 7)
const resolved = pending.map((id) => id + 2)
const lying = range(1, 9).map((i) => i * 100)
const letters = list(range(0, 20).map((i) => i * 7 + 1))
const leasedSerials = range(LEASED - 9, 10)
const leased = list(leasedSerials)
/** Serials, and what stands under them. */
const under = (serials: readonly number[], given: (serial: number) => GivenRow): readonly Argument[] => {
  const rows = serials.map((serial) => ({ serial, ...given(serial) }))
  return [list(serials), givenByKey(Object.keys(rows[0] ?? {}), rows)[1]]
}
/** The deadline of each, as the load has it, and where it goes. */
const movedTo = (place: (serial: number) => number | bigint) =>
  under(leasedSerials, (serial) => ({ deadline: NOW + 60_000_000n, place: place(serial) }))
const dying = range(LEASED + 1, 1_000)
/** First pages of sixty lanes, with so many letters of each. */
const ofLanes = (each: number): readonly Argument[] => [
  list(lanes.map((i) => 1 + (i % DRAWERS))),
  list(lanes.map((i) => i % 3)),
  ...[HIGHEST, HIGHEST, LOWEST, each, 51],
]

/** The values of an act on letters: what is the same for all stands behind the columns that they bring. */
function changing(name: string, ids: readonly number[]): readonly Argument[] {
  const { given, postgres } = named(name)
  const columns = given?.postgres ?? []
  const places = Math.max(...[...postgres.matchAll(/\$(\d+)/g)].map(([, place]) => Number(place)))
  const numbers = ['series', 'drawer']
  const lists = columns.map((column) => {
    if (column === 'id') return list(ids)
    return numbers.includes(column) ? list(ids.map(() => 1)) : '{}'
  })
  return [...lists, ...[NOW, 'actor', 'notes', 1].slice(0, places - columns.length)]
}

/** Ten reports: the number of their note, none of a case, and their source ids. */
const remains = [
  list(range(1, 10)),
  '{}',
  list(range(1, 10).map((number) => `reported-${number}`)),
  ...['{}', '{}', '{}', '{}'],
  list(range(1, 10).map(() => 1)),
  ...['{}', '{}', '{}', '{}', '{}', '{}', '{}'],
]

/** Source ids of letters, as the load has them. */
const sources = list(many.map((n) => `source-${String(n).padStart(9, '0')}`))
/** The same values for many. */
const same = (...values: readonly Argument[]) => values.map((value) => list(many.map(() => value)))

/** A thousand items that die of so many errors. */
const burial = (errors: number): readonly Argument[] => [
  NOW,
  ...under(dying, (serial) => ({
    note: (serial % errors) + 1,
    item: String(serial).padStart(KSUID_LENGTH, '0'),
    next: 10_000_000 + serial,
  })),
  PART,
  0,
  0,
  DEAD_PART,
  NOW,
  'queue-9',
  0,
  'true',
]

/** Where letters lie in a dead queue, where they go, and by when. */
const lyingAt = [list(lying.map(() => DEAD_PART)), list(lying.map(() => 0)), list(lying)] as const
const insertedAlike = [PART, NOW, NOW, 'hello', '{1,2}', '{1,1}', null, null, null, null]
const insertedMixed = [PART, NOW, NOW, 'hello', ...range(0, 8).map(() => '{1}'), '{}', '{}']
const counted = [7, 1, ...range(0, 9).map(() => 1)]
const KEY = ['caller POST /api/dlq', 'key-7'] as const

/** What is written one by one or by its key, what is cleared away, and what is asked now and then. */
const KEPT_ASIDE: Calls = {
  'cases.close': [letters],
  'cases.fileFailure': ['[{"id":7,"place":1,"failed_at":1,"error_class":"Error","error_message":"message"}]'],
  'cases.read': [letters],
  'counts.add': [PART, ...range(0, 9)],
  'counts.addAll': [`{${PART}}`, ...range(0, 9).map(() => '{1}')],
  'counts.forget.partition_totals': [`{${PART}}`],
  'counts.forgetDeltas': [`{${PART}}`],
  'dedupe.claim': [7, 'key-6', 'id', 0, NOW, NOW],
  'dedupe.forget': [HIGHEST, 500],
  'dedupe.forgetQueue': [7],
  'dedupe.read': [7, 'key-6'],
  'deletedQueues.batches': [`{${PART}}`],
  'drawers.newest': [],
  'drawers.read': ['queues', 'queues', 'queue-0', 3],
  'drawers.removeTotals': ['{1,2}'],
  'due.claim': ['{1,2,3}'],
  'due.held': ['{}', 1_000],
  'filing.ranges': [10],
  'filing.write': ['{1,2}', '{one,two}'],
  'history.byDefaultInstance': [HIGHEST, 0, LOWEST, 51, 'correlation-000000007'],
  'history.insert': [
    `{${NOW}}`,
    '{1}',
    '{7}',
    '{1}',
    '{2}',
    '{correlation}',
    '{}',
    '{}',
    '{}',
    '{}',
    '{}',
    '{}',
  ],
  'history.insertSources': ['{engine-9}', '{source}', `{${NOW}}`, '{1}', '{1}'],
  'history.letterKey': [7],
  'history.plainCapture': [9, NOW + 8n, 8],
  'history.plainLetter': [8],
  'history.plainLetterOf': ['source-000000008'],
  'history.remove, of ten of each series': [HIGHEST, 10, LOWEST, EVERY_SERIES],
  'history.remove, of a batch': giving((SERIES + 1) * 500, [HIGHEST, 500, LOWEST, EVERY_SERIES]),
  'history.removeSources': [HIGHEST, 500, LOWEST],
  'history.updateRun': [8, NOW + 7n, 7, 5, null],
  'idempotency.drop': KEY,
  'idempotency.insertAll': ['{scope}', '{key}', '{200}', '{body}', NOW],
  'idempotency.keep': [...KEY, 200, 'body'],
  'idempotency.read': [...KEY, NOW],
  'idempotency.remove': [HIGHEST, 500],
  'idempotency.take': [...KEY, NOW, NOW],
  'items.import': [
    '{30000001}',
    '{0}',
    '{0}',
    '{}',
    '{}',
    '{0}',
    '{}',
    '{}',
    '{}',
    '{"\\\\x7331"}',
    '{"\\\\x00"}',
    PART,
    NOW,
  ],
  'items.insertAlike': insertedAlike,
  'items.insertAlikeAlone': [...insertedAlike, ...counted],
  'items.insertPacked': insertedMixed,
  'items.insertAlone': [...insertedMixed, ...counted],
  'items.namingPayloads': [PART, 0, leased],
  'items.ready': [PART, LEASED, NOW, 10],
  'items.sentBack': [110, '{4000010}', '{0}'],
  'items.uncountDelivery': [PART, leased],
  'letterAttempts.read': [1, 50],
  'letterCounts.add': [1, 0, NOW, 1, NOW],
  'letterCounts.forget.letter_totals': ['{1,2}'],
  'letterCounts.forgetDeltas': ['{1,2}'],
  'letterTexts.ofRange': [1, 100, 100],
  'letters.keepFailures': [letters, NOW],
  'letters.lockCases': [letters],
  'letters.mixedKeys, of one key': giving(51, [
    `[{"key":"instance-7","letters":1,"captured_at":${NOW + 900_000n},"id":900000}]`,
    'engine-2',
    51,
  ]),
  'letters.nextToRemove.expired': [HIGHEST, LOWEST, 0, 25],
  'letters.nextToRemove.resolved': [HIGHEST, LOWEST, 0, 25],
  'letters.ofQueueItem': ['source-000000008'],
  'letters.readCases': [letters],
  // Of a few thousand all may be read.
  'letters.removeAttempts': giving(1_250, [letters]),
  'letters.removeTexts': [letters],
  'letters.samples, of sixty lanes': [
    list(lanes.map((i) => 1 + (i % DRAWERS))),
    list(lanes.map((i) => i % 3)),
  ],
  'lying.extend': [DEAD_PART, list(lying), 0, NOW],
  'lying.lay': [list(pending), list(pending.map((id) => 1_000_000 + id)), 8, NOW],
  'lying.lease': [DEAD_PART, list(lying), 0, NOW],
  'lying.lessee': [DEAD_PART, list(lying), 0, 'lessee'],
  'lying.lockToResolve': [DEAD_PART, list(lying), '{0,1}', 0],
  'lying.marks': [DEAD_PART, list(lying), 0],
  'lying.ofPart': [DEAD_PART, 0, 0, 5, 1],
  'lying.shelf': [DEAD_PART, 0, 0, 5, 1],
  'lying.toPart': [...lyingAt, list(lying), 8, 'queue-8', NOW],
  'lying.toSchedule': [...lyingAt, list(lying.map(() => NOW))],
  'outbox.lettersOfRows': ['{source-000000008,source-000000009}'],
  'outbox.sourcesOfLetters': [letters],
  'walk.reopenedAmong': [NOW, '1:1:', letters],
}

/** Calls and their values; `rows` is how many letters, and rows of history, the store has. */
export const QUEUE_AND_LETTER_CALLS: Calls = {
  'items.lease, of ten': [PART, LEASED, NOW, 10, NOW + 60_000_000n],
  'items.leaseCounted, of ten': [PART, LEASED, NOW, 10, NOW + 60_000_000n, NOW + 61_000_000n],
  'items.complete, of ten': [PART, leased],
  'items.completeCounted, of ten': [PART, leased, 10],
  'items.facts, of ten': [PART, leased, 0],
  'items.head': [PART, NOW, 10],
  'items.shelf': [PART, 0, LEASED, 10],
  'items.heads, of two parts': [`{${PART},${DEAD_PART}}`],
  'lying.heads, of two parts': [`{${PART},${DEAD_PART}}`],
  'due.leases': [NOW, 1_000, '{}'],
  'due.expired': [NOW, 1_000, '{}'],
  'due.scheduled': [NOW, 1_000, '{}'],
  'due.next': [NOW + 2_000_000n],
  'counts.read': [`{${PART}}`],
  'items.bury.alike, of a thousand items': [...burial(1), ...deathNote('queues')],
  'items.bury, of a thousand items that died of ten errors': [...burial(10), ...deathNotes(10, 'queues')],
  'items.bury, of a thousand items with an error each': [...burial(1_000), ...deathNotes(1_000, 'queues')],
  'items.toTail, of ten': [...movedTo((serial) => 10_000_000 + serial), PART, 0, 1],
  'items.toSchedule, of ten': [...movedTo(() => NOW + 60_000_000n), PART, 0, 1],
  'items.takeRelapsed, of ten': [...movedTo(() => 0), PART, 0, 1],
  'items.toHeld, of ten': [PART, leased],
  'items.extend, of ten': [PART, leased, NOW + 90_000_000n],
  'items.delete, of ten': [PART, leased, '{0,1,2}'],
  'items.lockFacts, of ten': [PART, leased, 0],
  'items.readLeased, of ten': [PART, leased],
  'items.assignCases, of ten': [
    ...under(leasedSerials, (serial) => ({ case_id: 20_000_000 + serial })),
    PART,
  ],
  'items.nextToClear': [PART, 0, 100, LEASED, 0],
  'items.ofCases': ['{14000010,14000020}'],
  'items.lockOfCases': ['{14000010,14000020}'],
  'items.waitForCases': ['{14000010,14000020}'],
  'letters.capture.alike, of ten': [NOW, ...remains, ...deathNote('http')],
  'letters.capture, of ten': [NOW, ...remains, ...deathNotes(10, 'http')],
  'letters.newest, first page': ['{0,1,2}', HIGHEST, HIGHEST, LOWEST, 51, 51],
  'letters.newestAndDrawers': giving(51, ['{0,1,2}', HIGHEST, HIGHEST, LOWEST, 51, 51]),
  'letters.newest, deep page': giving(51, ['{0,1,2}', NOW + 500n, 500, LOWEST, 51, 51]),
  'letters.newestInDrawers, of sixty lanes, one of each': giving(60, ofLanes(1)),
  'letters.newestInDrawers, of sixty lanes, a page of each': giving(60 * 51, ofLanes(51)),
  'letters.newestInDrawers, of a rare drawer': [
    list([0, 1, 2].map(() => DRAWERS + 1)),
    '{0,1,2}',
    HIGHEST,
    HIGHEST,
    LOWEST,
    51,
    51,
  ],
  'letters.nextToExpire': [HIGHEST, LOWEST, 0, 25],
  'letters.refile, of five hundred': () => changing('letters.refile', many),
  'letters.remove, of twenty': [letters],
  'letters.retry, of twenty': () => changing('letters.retry', pending),
  'letters.discard, of twenty': () => changing('letters.discard', pending),
  'letters.complete, of twenty': () => changing('letters.complete', pending),
  'letters.expire, of twenty': () => changing('letters.expire', pending),
  'letters.confirm, of twenty': () => changing('letters.confirm', resolved),
  'letters.restore, of twenty': () => changing('letters.restore', resolved),
  'lying.toTail, of nine': [
    list(lying.map(() => DEAD_PART)),
    list(lying.map(() => 0)),
    list(lying),
    list(lying.map((serial) => serial + 1_000_000)),
    0,
  ],
  'lying.lockFacts, of nine': [DEAD_PART, list(lying), '{0}'],
  'lying.due': giving(1_000, [NOW + 2_000_000n, 1_000, '{}']),
  'letters.nextToExpireInDrawer, of a rare drawer': [HIGHEST, LOWEST, 0, 250, DRAWERS + 1],
  'letters.unconfirmed': [HIGHEST, HIGHEST, LOWEST, 51],
  'letters.oldestPending': [],
  'letters.countNewest, of a thousand': ['{0,1,2}', LOWEST, HIGHEST, 1_000],
  'letters.countInDrawers, of many drawers': ['{0,1,2}', LOWEST, HIGHEST, 1_000, list(range(1, DRAWERS))],
  'letters.facts': [letters],
  'letterActivity.minutes, of a day': ['{0,1,2,3,4,5}', NOW - DAY, 900_000_000],
  'letterActivity.hours, of twenty places': ['{0,1,2,3,4,5}', NOW - DAY, 3_600_000_000, list(range(-20, 20))],
  'letterActivity.ofDrawers, of fifty': [NOW - DAY, list(range(1, 50))],
  'letterCounts.places, of all': [null, null, null],
  'drawers.span': [],
  'letterCounts.holding.few, of all places': giving(9 * DRAWERS, [EVERY_PLACE]),
  'letterCounts.holding.anywhere, of all places': giving(DRAWERS, [EVERY_PLACE]),
  'letterCounts.holding.ofPlaces, of three': giving(100, ['{1,2,3}']),
  'letterCounts.ofSignatures, of fifty': giving(9 * DRAWERS, [EVERY_PLACE, list(range(1, 50))]),
  'letterCounts.bySignature.few, of all places': giving(9 * DRAWERS, [EVERY_PLACE, LOWEST, 0, '', 51]),
  'letterCounts.bySignature.anywhere, of all places': [EVERY_PLACE, LOWEST, 0, '', 51],
  'letterCounts.bySignature.ofPlaces, of three': ['{1,2,3}', LOWEST, 0, '', 51],
  'letterCounts.addAll, of three': ['{1,2,3}', '{0,4,6}', `{${NOW},${NOW},${NOW}}`, '{1,1,1}', '{0,0,0}'],
  'drawers.holding.few, of all places': giving(DRAWERS, [EVERY_PLACE]),
  'drawers.holding.anywhere, of all places': giving(DRAWERS, [EVERY_PLACE]),
  // Each leap may read the few pages that these drawers fill; those of many are read by many-errors.test.ts.
  'drawers.holding.ofPlaces, of three': giving(6 * DRAWERS, ['{1,2,3}']),
  'drawers.ofSignature': [EVERY_PLACE, '1-7'],
  'drawers.page': [10, DRAWERS, 500],
  'drawers.lockEmpty, of many': giving(DRAWERS, [list(range(1, DRAWERS))]),
  'drawers.stillEmpty, of many': giving(DRAWERS, [list(range(1, DRAWERS))]),
  'drawers.byNumber, of many': [list(range(1, DRAWERS))],
  'signatures.inUse': [20_000],
  'signatures.readFiled': ['1-7'],
  'letterActivity.first': [],
  'letterActivity.remove.letter_minutes': [NOW, 500],
  'letterActivity.remove.letter_hours': [NOW, 500],
  'letters.ofInstance': ['instance-7', HIGHEST, HIGHEST, LOWEST, 51],
  'letters.ofCorrelation': ['correlation-000000007', HIGHEST, HIGHEST, LOWEST, 51],
  'letters.byNumber': [7, 'engine-2', 'instance-7', NOW + 7n],
  'letters.byShortKey, of an engine': ['engine-2', 'instance-7', NOW + 7n],
  'letters.byShortKey, of a queue': ['queues', 'source-000000008', NOW + 8n],
  'letters.read': [500],
  'letters.summaries': [letters],
  'letters.lockSent': [letters],
  'letterTexts.ofLetters': [letters],
  'lying.ready': [DEAD_PART, 0, 5],
  'lying.holders': ['{source-000000100,item-source-000000101}', '{source-000000100}'],
  'walk.reopened, of one reopening': (rows) => [
    NOW + BigInt(rows) - 19n,
    '1:1:',
    HIGHEST,
    HIGHEST,
    LOWEST,
    HIGHEST,
    51,
  ],
  'search.among': [letters, HIGHEST, HIGHEST, LOWEST, '{0,1,2}', null, null, null, 51, 20],
  'search.unfiled': [1_000],
  'history.bySeries, of all series': giving((SERIES + 1) * 51, [
    HIGHEST,
    0,
    LOWEST,
    51,
    list(range(1, SERIES + 1)),
  ]),
  'history.bySeries, of a rare series': [HIGHEST, 0, LOWEST, 51, `{${SERIES + 1}}`],
  'history.newestOfSeries, of a few runs': [list(range(1, SERIES + 1)), LOWEST, 20],
  'history.byCorrelation': [HIGHEST, 0, LOWEST, 51, 'correlation-000000007'],
  'history.byInstance': [HIGHEST, 0, LOWEST, 51, 'instance-5'],
  'history.byNumber, of an engine': [list(range(1, 5)), NOW + 7n, 7],
  'history.byShortKey': ['correlation-000000007', NOW + 7n],
  'history.ofLetter': [7, 50],
  'history.bySource': ['engine-1', 'source-000000008'],
  'history.knownSources, of many': giving(many.length, [...same('engine-1'), sources]),
  'letters.bySource, of many': giving(many.length, [...same('engine-1'), sources]),
  'letters.onFile, of many': giving(many.length, [
    list(many),
    ...same('Error', 'message'),
    '{}',
    '{}',
    ...same(1),
  ]),
  'idempotency.known, of many': giving(many.length, [...same('caller POST /api/dlq'), sources]),
  ...KEPT_ASIDE,
}
