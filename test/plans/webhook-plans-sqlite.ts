/** What the plans of webhooks on SQLite must be like. */

/** Statements that may sort, and why that is little. */
export const WEBHOOKS_SORTED: Readonly<Record<string, string>> = {
  'webhooks.queuedJobs': 'the first of two lists, each of which ends at the limit',
}

/** Statements that may read something from end to end, and why that stays small. */
export const WEBHOOKS_SCANNED: Readonly<Record<string, string>> = {
  'webhooks.readTallies': 'a few numbers for each channel and consumer',
}

/** The index that a statement must find its rows by, where it does not name it. The `autoindex` are those of unique columns. */
export const WEBHOOKS_INDEXES: Readonly<Record<string, readonly string[]>> = {
  'INTEGER PRIMARY KEY': [
    'letters.erase',
    'webhooks.errorsOfPage',
    'webhooks.letterToLay',
    'webhooks.removeOfLetters',
    'webhooks.retriesOfLetters',
  ],
  'USING PRIMARY KEY': [
    'webhooks.buryOne',
    'webhooks.claim',
    'webhooks.claimPulled',
    'webhooks.forget.webhook_totals',
    'webhooks.dyingJobs',
    'webhooks.endJobs',
    'webhooks.fitJobs',
    'webhooks.layBack',
    'webhooks.lockJobToLay',
    'webhooks.makeDueReady',
    'webhooks.deliver',
    'webhooks.move',
    'webhooks.pruneJobs',
    'webhooks.readJob',
    'webhooks.readJobDetail',
    'webhooks.readJobsOfMessage',
    'webhooks.readMessage',
    'webhooks.readSeed',
    'webhooks.readTalliesOf',
    'webhooks.removeExhausted',
    'webhooks.removeOfLetters',
    'webhooks.startOver',
    'webhooks.undelivered',
  ],
  sqlite_autoindex_webhook_messages_1: [
    'webhooks.contents',
    'webhooks.dyingJobs',
    'webhooks.fitJobs',
    'webhooks.lapsed',
    'webhooks.markDispatched',
    'webhooks.messageOfDead',
    'webhooks.messagesExist',
    'webhooks.messagesOfPage',
    'webhooks.pruneMessages',
    'webhooks.putBack',
    'webhooks.queuedJobs',
    'webhooks.readJobDetail',
    'webhooks.takeDueOne',
  ],
  sqlite_autoindex_webhook_messages_2: ['webhooks.messageToLay', 'webhooks.readMessage'],
  sqlite_autoindex_webhook_consumers_2: [
    'webhooks.changeConsumer',
    'webhooks.consumersOf',
    'webhooks.deleteConsumer',
    'webhooks.dropPreviousSecret',
    'webhooks.dropSecrets',
    'webhooks.dyingJobs',
    'webhooks.endPause',
    'webhooks.holdProbe',
    'webhooks.lapsed',
    'webhooks.namesOfConsumer',
    'webhooks.pause',
    'webhooks.prolongPause',
    'webhooks.readJobsOfMessage',
    'webhooks.receivers',
    'webhooks.releaseProbe',
    'webhooks.rotateSecret',
    'webhooks.setLimits',
    'webhooks.startOver',
  ],
  sqlite_autoindex_webhook_consumers_3: [
    'webhooks.deadConsumers',
    'webhooks.overview',
    'webhooks.overviewOf',
    'webhooks.readConsumer',
  ],
  sqlite_autoindex_webhook_channels_2: [
    'webhooks.changeChannel',
    'webhooks.consumersOf',
    'webhooks.nextChannel',
    'webhooks.overview',
    'webhooks.paused',
  ],
  sqlite_autoindex_webhook_channels_3: [
    'webhooks.anyChannel',
    'webhooks.deadConsumers',
    'webhooks.parties',
    'webhooks.readChannel',
  ],
  sqlite_autoindex_webhook_producers_2: [
    'webhooks.changeProducer',
    'webhooks.parties',
    'webhooks.readProducer',
  ],
  history_by_correlation: ['letters.erasureOfRun'],
  webhook_messages_waiting: ['webhooks.nextScheduled'],
}
