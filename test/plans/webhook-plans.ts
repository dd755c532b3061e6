/**
 * What the plans of webhooks on PostgreSQL must be like: which statements may sort or read something from end to end, by which index
 * the others find their rows, and values for each of them that make a scan show.
 */
import type { Argument } from './explain.ts'
import { NOW } from './explain.ts'
import { CHANNEL, FIRST_OTHER, idOf, OTHERS, PAUSED, PULLED, PUSHED } from './load-webhooks.ts'

const TAIL = 'changes that were not folded yet have no index: they are folded every second'

/** Statements that may sort, and why that is little. */
export const WEBHOOKS_SORTED: Readonly<Record<string, string>> = {
  'letters.retryMany': 'the letters that one call retries',
  'webhooks.fold': 'the sums of one batch of deltas',
}

/** Statements that may read something from end to end, and why that stays small. */
export const WEBHOOKS_SCANNED: Readonly<Record<string, string>> = {
  'webhooks.readTallies': `a few totals per consumer and channel; ${TAIL}`,
  'webhooks.readTalliesOf': TAIL,
  'webhooks.deleteDeltasOf': TAIL,
  'webhooks.deadCounts': TAIL,
  'webhooks.unfolded': TAIL,
  'webhooks.paused':
    'its partial index holds nothing but the consumers that are paused, and it stops at its limit',
  'webhooks.openRuns':
    'its partial index holds nothing but the runs that are under way, and it stops at its limit',
  'webhooks.runsLeft': 'its partial index holds nothing but the runs that are under way',
  'webhooks.newestRuns': 'stops at its limit',
}

/** The index that a statement must find its rows by, and the last of its columns that must bound the search, if any. */
export const WEBHOOKS_INDEXES: Readonly<Record<string, readonly string[]>> = {
  'webhook_jobs_pkey id': [
    'webhooks.bury',
    'webhooks.claim',
    'webhooks.claimPulled',
    'webhooks.deliverPulled',
    'webhooks.dyingJobs',
    'webhooks.endJobs',
    'webhooks.jobOfLetter',
    'webhooks.layBack',
    'webhooks.lockDying',
    'webhooks.lockJobOfLetter',
    'webhooks.lockJobToLay',
    'webhooks.makeDueReady',
    'webhooks.move',
    'webhooks.pruneJobs',
    'webhooks.readJob',
    'webhooks.readJobDetail',
    'webhooks.readJobsOfMessage',
    'webhooks.removeExhausted',
    'webhooks.removeOfLetters',
    'webhooks.startOver',
    'webhooks.takeBack',
    'webhooks.targetOfLetter',
    'webhooks.undelivered',
  ],
  'webhook_jobs_ready consumer': [
    'webhooks.claim',
    'webhooks.consumersWithReady',
    'webhooks.peek',
    'webhooks.queuedJobs',
  ],
  'webhook_jobs_later due_at': ['webhooks.makeDueReady', 'webhooks.nextDue'],
  'webhook_jobs_later_of consumer': ['webhooks.queuedJobs'],
  'webhook_jobs_in_flight due_at': ['webhooks.lapsed'],
  'webhook_jobs_dead consumer': ['webhooks.newestDead'],
  'webhook_jobs_dead created_at': ['webhooks.deadJobs.newer', 'webhooks.deadJobs.older', 'webhooks.nextDead'],
  'webhook_jobs_by_state consumer': ['webhooks.findJobOf'],
  'webhook_jobs_by_state state': ['webhooks.jobEnds'],
  'webhook_messages_pkey id': [
    'webhooks.bury',
    'webhooks.contents',
    'webhooks.dyingJobs',
    'webhooks.jobOfLetter',
    'webhooks.lapsed',
    'webhooks.markDispatched',
    'webhooks.messagesExist',
    'webhooks.messagesOfPage',
    'webhooks.pruneMessages',
    'webhooks.putBack',
    'webhooks.queuedJobs',
    'webhooks.readJobDetail',
    'webhooks.takeDueOne',
  ],
  'webhook_messages_channel_message_id_key message_id': ['webhooks.messageToLay', 'webhooks.readMessage'],
  'webhook_messages_newest received_at': [
    'webhooks.listMessages.newer',
    'webhooks.listMessages.older',
    'webhooks.nextToPrune',
  ],
  'webhook_messages_waiting_newest created_at': ['webhooks.listWaiting.newer', 'webhooks.listWaiting.older'],
  'webhook_messages_sent_newest created_at': [
    'webhooks.listScheduledAndSent.newer',
    'webhooks.listScheduledAndSent.older',
  ],
  'webhook_messages_waiting channel': ['webhooks.nextScheduled'],
  'webhook_messages_due next_try_at': ['webhooks.takeDue'],
  'webhook_consumers_number_key number': [
    'webhooks.changeConsumer',
    'webhooks.claim',
    'webhooks.consumersOf',
    'webhooks.consumersWithReady',
    'webhooks.deleteConsumer',
    'webhooks.dropPreviousSecret',
    'webhooks.dropSecrets',
    'webhooks.dyingJobs',
    'webhooks.endPause',
    'webhooks.holdProbe',
    'webhooks.lapsed',
    'webhooks.namesOf',
    'webhooks.namesOfConsumer',
    'webhooks.openRuns',
    'webhooks.pause',
    'webhooks.prolongPause',
    'webhooks.readJobsOfMessage',
    'webhooks.receivers',
    'webhooks.releaseProbe',
    'webhooks.rotateSecret',
    'webhooks.setLimits',
    'webhooks.targetOfLetter',
  ],
  'webhook_consumers_channel_consumer_id_key consumer_id': [
    'webhooks.consumerToLay',
    'webhooks.deadConsumers',
    'webhooks.overview',
    'webhooks.overviewOf',
    'webhooks.readConsumer',
  ],
  'webhook_consumers_newest channel': ['webhooks.audience'],
  'webhook_consumers_newest created_at': ['webhooks.listConsumers.newer', 'webhooks.listConsumers.older'],
  webhook_consumers_paused: ['webhooks.paused'],
  'webhook_channels_channel_id_key channel_id': [
    'webhooks.channelNumber',
    'webhooks.channelToLay',
    'webhooks.deadConsumers',
    'webhooks.parties',
    'webhooks.readChannel',
  ],
  'webhook_channels_number_key number': [
    'webhooks.bury',
    'webhooks.changeChannel',
    'webhooks.consumersOf',
    'webhooks.dyingJobs',
    'webhooks.namesOf',
    'webhooks.namesOfConsumer',
    'webhooks.nextChannel',
    'webhooks.openRuns',
    'webhooks.overview',
    'webhooks.paused',
    'webhooks.receivers',
  ],
  'webhook_channels_newest created_at': ['webhooks.listChannels.newer', 'webhooks.listChannels.older'],
  'webhook_producers_pkey id': ['webhooks.readJobDetail', 'webhooks.readMessage'],
  'webhook_producers_producer_id_key producer_id': [
    'webhooks.changeProducer',
    'webhooks.parties',
    'webhooks.readProducer',
  ],
  'webhook_producers_newest created_at': ['webhooks.listProducers.newer', 'webhooks.listProducers.older'],
  'webhook_bulk_runs_pkey id': [
    'webhooks.advanceRun',
    'webhooks.holdRun',
    'webhooks.leaveRun',
    'webhooks.readRun',
    'webhooks.takeRun',
  ],
  webhook_bulk_runs_open: ['webhooks.openRuns', 'webhooks.runsLeft'],
  'webhook_bulk_runs_of consumer': ['webhooks.deleteBulkRunsOf'],
  'webhook_totals_pkey subject': ['webhooks.deleteTotalsOf', 'webhooks.readTalliesOf'],
  'webhook_deltas_pkey id': ['webhooks.fold'],
  'webhook_seed_pkey name': ['webhooks.readSeed'],
  'count_folds_pkey name': ['folds.last'],
  'drawers_source_engine_queue_signature_key engine': ['webhooks.deadCounts'],
  'letter_totals_pkey status': ['webhooks.deadCounts'],
  'letter_deltas_pkey id': ['letterCounts.fold'],
  'partition_deltas_pkey id': ['counts.fold'],
  'letters_pkey id': [
    'letters.erase',
    'letters.retryMany',
    'webhooks.errorsOfPage',
    'webhooks.letterToLay',
    'webhooks.removeOfLetters',
    'webhooks.targetOfLetter',
  ],
  'letters_by_source source_id': ['webhooks.bury'],
  'letter_attempts_pkey number': ['webhooks.firstFailures'],
  'history_by_correlation created_at': ['letters.retryMany', 'webhooks.bury'],
  'history_by_correlation correlation_id': ['letters.erasureOfRun'],
  'history_of_letter letter_id': ['webhooks.retriesOfLetters'],
}

const HIGHEST = 9_223_372_036_854_775_807n
const LOWEST = -9_223_372_036_854_775_808n
const LAST = 'zzzzzzzzzzzzzzzzzzzz'
const LATER = NOW + 30_000_000n
/** Everything that waits for its time is due by then. */
const ALL_DUE = NOW + 3_600_000_000n

const list = (values: Iterable<Argument>) => `{${[...values].join(',')}}`
const numbers = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i)
const ids = (prefix: string, first: number, step: number, count = 20) =>
  numbers(0, count).map((i) => idOf(prefix, first + i * step))

const everyConsumer = [PUSHED, PULLED, ...numbers(FIRST_OTHER, OTHERS)]
const ofEach = (value: Argument) => list(everyConsumer.map(() => value))
const named = JSON.stringify(numbers(3, OTHERS).map((n) => [`channel-${n}`, `consumer-${n}`]))
const ends = JSON.stringify(
  everyConsumer.flatMap((consumer) => numbers(0, 5).map((state) => [consumer, state])),
)

// Jobs of the push consumer in each state: see the states of the load.
const ready = ids('j', 277, 2, 4)
const dead = ids('j', 61, 100, 5)
const inFlight = ids('j', 97, 100, 5)
const messages = ids('m', 101, 1)
const letters = list(numbers(1, 20))
const forEach = (jobs: readonly string[], given: (place: number) => unknown) =>
  JSON.stringify(Object.fromEntries(jobs.map((job, place) => [job, given(place)])))
const note = (note: number) => ({
  note,
  drawer: 1,
  series: 1,
  engine: 'webhooks',
  correlation_id: `message-${note}`,
  captured_at: `${NOW}`,
  first_failure_at: `${NOW}`,
  last_failure_at: `${NOW}`,
  recorded_at: `${NOW}`,
  turn: 0,
  reason: 'attempts',
  error_class: 'Error',
  error_message: 'it failed',
  duration_ms: 0,
})
const FOLD = (lock: string): readonly Argument[] => [1_000, 0, lock, 'owner', LATER, NOW]
const older = [HIGHEST, LAST, 25] as const
const newer = [LOWEST, '', 25] as const

/** Calls and their values. */
export const WEBHOOKS_CALLS: Readonly<Record<string, readonly Argument[]>> = {
  'counts.fold': FOLD('queues.fold'),
  'letterCounts.fold': FOLD('letters.fold'),
  'webhooks.fold': FOLD('webhooks.fold'),
  'folds.last': ['letters.fold'],
  'webhooks.unfolded': [],
  'webhooks.tally': [PUSHED, 1, 1],
  'webhooks.tallyAll': [ofEach(PUSHED), ofEach(1), ofEach(1)],
  'webhooks.readTallies': [],
  'webhooks.readTalliesOf': [PUSHED],
  'webhooks.deleteDeltasOf': [PUSHED],
  'webhooks.deleteTotalsOf': [PUSHED],

  'webhooks.deadCounts': [],
  'webhooks.deadConsumers': [named],
  'webhooks.jobEnds': [ends],
  'webhooks.consumersOf': [list(everyConsumer)],
  'webhooks.namesOf': [list(everyConsumer)],
  'webhooks.namesOfConsumer': [PUSHED],
  'webhooks.overview': [CHANNEL, 'consumer-1', 15],
  'webhooks.overviewOf': [CHANNEL, 'consumer-1', 15, CHANNEL],
  'webhooks.paused': [1_000],
  'webhooks.openRuns': [1_000],

  'webhooks.consumersWithReady': [NOW],
  'webhooks.receivers': [list(everyConsumer)],
  'webhooks.peek': [ofEach(PUSHED), ofEach(5)],
  'webhooks.claim': [list(everyConsumer), ofEach(2), 'claim', NOW, LATER],
  'webhooks.contents': [list(messages), 1_000_000],
  'webhooks.move': [list(inFlight), forEach(inFlight, () => ['claim', 3, 0, null, null]), NOW],
  'webhooks.lapsed': [ALL_DUE, 5],
  'webhooks.nextDue': [NOW],
  'webhooks.makeDueReady': [ALL_DUE, 5],
  'webhooks.pause': [PUSHED, NOW, LATER, 5, 'reason'],
  'webhooks.prolongPause': [PAUSED, NOW, 60, 'reason'],
  'webhooks.endPause': [PAUSED],
  'webhooks.holdProbe': [PAUSED, ALL_DUE, LATER],
  'webhooks.releaseProbe': [PAUSED, NOW],
  'webhooks.setLimits': [PUSHED, 1, 1],
  'webhooks.rotateSecret': [PUSHED, 'secret', NOW],
  'webhooks.dropPreviousSecret': [PUSHED],
  'webhooks.dropSecrets': [PUSHED],

  'webhooks.dyingJobs': [list(inFlight)],
  'webhooks.lockDying': [list(inFlight)],
  'webhooks.firstFailures': [letters],
  'webhooks.endJobs': [list(inFlight), forEach(inFlight, () => 1), NOW],
  'webhooks.bury': [
    JSON.stringify(inFlight.map((_, i) => note(i + 1))),
    list(inFlight),
    NOW,
    forEach(inFlight, (place) => [place + 1, 1]),
  ],
  'webhooks.retriesOfLetters': [letters],
  'webhooks.letterToLay': [20],
  'webhooks.lockJobToLay': ['j000000061'],
  'webhooks.layBack': ['j000000061', 1, NOW],
  'webhooks.insertDeadJob': [NOW, NOW, 0, 1, PUSHED, 5, 1, 'x000000001', 'm000000001'],
  'webhooks.channelToLay': ['channel-1'],
  'webhooks.consumerToLay': [CHANNEL, 'consumer-1'],
  'webhooks.messageToLay': [CHANNEL, 'message-101'],
  'webhooks.jobOfLetter': ['j000000061'],
  'webhooks.targetOfLetter': [20],
  'webhooks.lockJobOfLetter': ['j000000061'],
  'webhooks.takeBack': ['j000000061', 1, NOW],
  'letters.erase': [list([27, 47, 67, 87]), 'engine-2'],
  'letters.erasureOfRun': ['correlation-000000007', 8],
  'letters.retryMany': [
    list([27, 47, 67, 87]),
    forEach(['27', '47', '67', '87'], () => ['message', 'queue', '{}']),
    NOW,
    'actor',
    'notes',
    1,
  ],

  'webhooks.readJob': ['j000000061'],
  'webhooks.readJobDetail': ['j000000061'],
  'webhooks.queuedJobs': [PULLED, 25],
  'webhooks.claimPulled': [NOW, 1_000_000, list(ready), forEach(ready, () => ['claim', 0, 0]), 0, 0, 1],
  'webhooks.deliverPulled': [NOW, list(inFlight), forEach(inFlight, () => 'claim')],
  'webhooks.startOver': [list(dead), NOW],
  'webhooks.removeExhausted': [list(dead), 5],
  'webhooks.removeOfLetters': [letters],
  'webhooks.deadJobs.older': [...older, PUSHED],
  'webhooks.deadJobs.newer': [...newer, PUSHED],
  'webhooks.messagesOfPage': [list(messages)],
  'webhooks.errorsOfPage': [letters],
  'webhooks.newestDead': [PUSHED],
  'webhooks.nextDead': [PUSHED, LOWEST, '', HIGHEST, LAST, 25],
  'webhooks.insertRun': ['x000000001', 'purge', PUSHED, 'actor', NOW, 10, NOW, 'j000000061', 'owner', LATER],
  'webhooks.readRun': ['r000000050'],
  'webhooks.newestRuns': [25],
  'webhooks.runsLeft': [NOW, 10],
  'webhooks.takeRun': ['r000000003', 'owner', LATER, NOW],
  'webhooks.leaveRun': ['r000000003', 'owner'],
  'webhooks.holdRun': ['r000000003', 'owner'],
  'webhooks.advanceRun': ['r000000003', NOW, 'j000000061', 10, LATER, null],
  // Of one that has none: those that there are would be measured.
  'webhooks.deleteBulkRunsOf': [PUSHED],

  'webhooks.audience': [list([CHANNEL])],
  'webhooks.insertJobs': [
    NOW,
    '{x000000001,x000000002}',
    '{m000000001,m000000001}',
    '{0,0}',
    list([PUSHED, PULLED]),
  ],
  'webhooks.insertMessages': [
    NOW,
    '\\x68656c6c6f',
    '{x000000001}',
    list([CHANNEL]),
    '{new}',
    '{p000000001}',
    '{NULL}',
    '{0}',
    '{x000000001}',
    '{2}',
    '{text/plain}',
    '{[]}',
    '{1}',
    '{5}',
  ],
  'webhooks.messagesExist': [list(messages)],
  'webhooks.parties': ['{channel-1,channel-7}', '{producer-1,producer-7}'],
  'webhooks.takeDue': [ALL_DUE, 5],
  'webhooks.takeDueOne': ['m000000100'],
  'webhooks.markDispatched': [NOW, '{m000000100,m000000120}', '{x000000001,x000000002}', '{1,1}'],
  'webhooks.putBack': ['m000000100', LATER],
  'webhooks.nextChannel': [CHANNEL],
  'webhooks.nextToPrune': [CHANNEL, ALL_DUE, LOWEST, '', 5],
  'webhooks.undelivered': [list(ids('j', 161, 1))],
  'webhooks.pruneJobs': [list(ids('j', 101, 1))],
  'webhooks.pruneMessages': [list(messages)],

  'webhooks.readMessage': [CHANNEL, 'message-101'],
  'webhooks.readJobsOfMessage': ['j000000201', 'j000000202'],
  'webhooks.listMessages.older': [...older, CHANNEL],
  'webhooks.listMessages.newer': [...newer, CHANNEL],
  'webhooks.listWaiting.older': [...older, CHANNEL],
  'webhooks.listWaiting.newer': [...newer, CHANNEL],
  'webhooks.listScheduledAndSent.older': [...older, CHANNEL],
  'webhooks.listScheduledAndSent.newer': [...newer, CHANNEL],
  'webhooks.nextScheduled': [CHANNEL],
  'webhooks.channelNumber': ['channel-1'],

  'webhooks.readChannel': ['channel-1'],
  'webhooks.createChannel': ['x000000001', 'new', 'name', 'token', NOW],
  'webhooks.changeChannel': [CHANNEL, NOW, 'name', 'token', LATER],
  'webhooks.listChannels.older': older,
  'webhooks.listChannels.newer': newer,
  'webhooks.readProducer': ['producer-1'],
  'webhooks.createProducer': ['x000000001', 'new', 'name', 'token', NOW],
  'webhooks.changeProducer': ['producer-1', NOW, 'name', 'token', LATER],
  'webhooks.listProducers.older': older,
  'webhooks.listProducers.newer': newer,
  'webhooks.readConsumer': [CHANNEL, 'consumer-1'],
  'webhooks.createConsumer': ['x000000001', CHANNEL, 'new', 'name', 'token', 'http://localhost', 0, NOW],
  'webhooks.changeConsumer': [PUSHED, NOW, 'name', 'token', 'http://localhost', 0, LATER],
  'webhooks.listConsumers.older': [...older, CHANNEL],
  'webhooks.listConsumers.newer': [...newer, CHANNEL],
  'webhooks.findJobOf': [PUSHED],
  'webhooks.deleteConsumer': [PUSHED, NOW],
  'webhooks.rememberSeed': ['seed', 'hash', NOW],
  'webhooks.readSeed': ['seed'],
}
