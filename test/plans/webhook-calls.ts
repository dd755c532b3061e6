/** Every statement of webhooks on PostgreSQL with values that make a scan of the tables show, as load-webhooks.ts fills them. */
import { deathNote, deathNotes } from './death-notes.ts'
import { type Argument, type Calls, HIGHEST, LATER, LOWEST, list, NOW, range } from './explain.ts'
import { CHANNEL, FIRST_OTHER, idOf, OTHERS, PAUSED, PULLED, PUSHED } from './load-webhooks.ts'

const LAST = 'zzzzzzzzzzzzzzzzzzzz'
/** A consumer without jobs. */
const NOBODY = 1_000_000
/** Everything that waits for its time is due by then. */
const ALL_DUE = NOW + 3_600_000_000n

const ids = (prefix: string, first: number, step: number, count = 20) =>
  range(0, count).map((i) => idOf(prefix, first + i * step))

const everyConsumer = [PUSHED, PULLED, ...range(FIRST_OTHER, OTHERS)]
const ofEach = (value: Argument) => list(everyConsumer.map(() => value))
const named = ['channel', 'consumer'].map((kind) => list(range(3, OTHERS).map((n) => `${kind}-${n}`)))
const ends = JSON.stringify(
  everyConsumer.flatMap((consumer) => range(0, 5).map((state) => [consumer, state])),
)

// Jobs of the push consumer in each state: see the states of the load.
const ready = ids('j', 277, 2, 4)
const dead = ids('j', 61, 100, 5)
const inFlight = ids('j', 97, 100, 5)
const messages = ids('m', 101, 1)
const letters = list(range(1, 20))
const forEach = (jobs: readonly string[], given: (place: number) => unknown) =>
  JSON.stringify(Object.fromEntries(jobs.map((job, place) => [job, given(place)])))
const FOLD = (lock: string): readonly Argument[] => [1_000, 0, lock, 'owner', LATER, NOW]
const older = [HIGHEST, LAST, 25] as const
const newer = [LOWEST, '', 25] as const

/** Calls and their values. */
export const WEBHOOKS_CALLS: Calls = {
  'counts.fold': FOLD('queues.fold'),
  'letterCounts.fold': FOLD('letters.foldChanges'),
  'webhooks.fold': FOLD('webhooks.fold'),
  'folds.last': ['letters.foldChanges'],
  'webhooks.unfolded': [],
  'webhooks.add': [PUSHED, 1, 1],
  'webhooks.addAll': [ofEach(PUSHED), ofEach(1), ofEach(1)],
  'webhooks.correct.webhook_totals': [PUSHED, 1, 1],
  'webhooks.readTallies': [],
  'webhooks.readTalliesOf': [PUSHED],
  'webhooks.forgetDeltas': [ofEach(PUSHED)],
  'webhooks.forget.webhook_totals': [ofEach(PUSHED)],

  'webhooks.deadConsumers': named,
  'webhooks.jobEnds': [ends],
  'webhooks.consumersOf': [list(everyConsumer)],
  'webhooks.namesOfConsumer': [PUSHED],
  'webhooks.overview': [CHANNEL, 'consumer-1', 15],
  'webhooks.overviewOf': [CHANNEL, 'consumer-1', 15, CHANNEL],
  'webhooks.paused': [1_000],

  'webhooks.consumersWithReady': [NOW],
  'webhooks.receivers': [list(everyConsumer)],
  'webhooks.peek': [ofEach(PUSHED), ofEach(5)],
  'webhooks.claim': [list(everyConsumer), ofEach(2), 'claim', NOW, LATER],
  'webhooks.contents': [list(messages), 1_000_000],
  'webhooks.deliver': [list(inFlight), forEach(inFlight, () => 'claim'), NOW],
  'webhooks.move': [list(inFlight), forEach(inFlight, () => ['claim', 3, 0, null, null]), NOW],
  'webhooks.lapsed': [ALL_DUE, 5],
  'webhooks.nextDue': [NOW],
  'webhooks.makeDueReady': [ALL_DUE, 5],
  'webhooks.pause': [PUSHED, NOW, LATER, 5, 'reason'],
  'webhooks.prolongPause': [PAUSED, NOW, 60, 'reason'],
  'webhooks.endPause': [PAUSED],
  'webhooks.holdProbe': [PAUSED, ALL_DUE, LATER],
  'webhooks.releaseProbe': [PAUSED, NOW, NOW],
  'webhooks.setLimits': [PUSHED, 1, 1],
  'webhooks.rotateSecret': [PUSHED, 'secret', NOW],
  'webhooks.dropPreviousSecret': [PUSHED],
  'webhooks.dropSecrets': [PUSHED],

  'webhooks.dyingJobs': [list(inFlight)],
  'webhooks.lockDying': [list(inFlight)],
  'webhooks.endJobs': [list(inFlight), forEach(inFlight, () => [1]), NOW],
  'webhooks.bury.alike': [
    NOW,
    list(inFlight.slice(0, 1)),
    NOW,
    forEach(inFlight.slice(0, 1), () => [1, 1]),
    ...deathNote('webhooks'),
  ],
  'webhooks.bury': [
    NOW,
    list(inFlight),
    NOW,
    forEach(inFlight, (place) => [place + 1, 1]),
    ...deathNotes(inFlight.length, 'webhooks'),
  ],
  'webhooks.retriesOfLetters': [letters],
  'webhooks.lettersToLay': [letters],
  'webhooks.channelsToLay': ['{channel-1,channel-7}'],
  'webhooks.consumersToLay': [JSON.stringify([[CHANNEL, 'consumer-1']])],
  'webhooks.messagesToLay': [JSON.stringify(range(101, 20).map((n) => [CHANNEL, `message-${n}`]))],
  'webhooks.lockJobsToLay': [list(dead)],
  'webhooks.insertDeadJobs': [
    list([1]),
    NOW,
    JSON.stringify({ 'source-000000001': [PUSHED, 'm000000001', '0'] }),
  ],
  'webhooks.fitJobs': [list(dead)],
  'letters.erase': [list([27, 47, 67, 87])],
  'letters.erasureOfRun': ['correlation-000000007'],

  'webhooks.readJob': ['j000000061'],
  'webhooks.readJobDetail': ['j000000061'],
  'webhooks.queuedJobs': [PULLED, 25],
  'webhooks.claimPulled': [NOW, 1_000_000, list(ready), forEach(ready, () => ['claim', 0, 0]), 0, 0, 1],
  'webhooks.startOver': [list(dead), NOW],
  'webhooks.removeExhausted': [list(dead), 5],
  'webhooks.removeOfLetters': [letters],
  'webhooks.deadJobs.older': [...older, PUSHED],
  'webhooks.deadJobs.newer': [...newer, PUSHED],
  'webhooks.newestDead': [PUSHED],
  'webhooks.nextDead': [PUSHED, LOWEST, '', HIGHEST, LAST, 25, 5],

  'webhooks.audience': [list([CHANNEL]), '{""}'],
  'webhooks.insertJobs': [
    '{x000000001,x000000002}',
    '{m000000001,m000000001}',
    '{0,0}',
    list([PUSHED, PULLED]),
    NOW,
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
  'webhooks.markDispatched': ['{m000000100,m000000120}', '{x000000001,x000000002}', '{1,1}', NOW],
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

  'webhooks.anyChannel': [],
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
  'webhooks.findJobOf': [NOBODY],
  'webhooks.deleteConsumer': [PUSHED, NOW],
  'webhooks.rememberSeed': ['seed', 'hash', NOW],
  'webhooks.readSeed': ['seed'],
}
