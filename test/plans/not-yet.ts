/**
 * Statements that still read or sort what grows on some ground, and what is wrong with them. The list only gets shorter.
 *
 * Most are of one kind: `WHERE a = $1 ORDER BY a, b LIMIT $2`. Without statistics PostgreSQL believes that `a = $1` is met by few rows, fetches
 * them all and sorts them. A range of the index says the same and is believed to be long: `WHERE (a, b) > ($1, $2) AND a <= $1
 * ORDER BY a, b LIMIT $3` (see items.head). That does not help where several indexes begin
 * with `a`: the rows of one are then sorted within `a`. Lists of webhook messages are of that kind.
 */
const SORTS_ALL = 'believes that its first columns are met by few rows, and sorts all of them'

export const NOT_YET: Readonly<Record<string, string>> = {
  // Redrives and webhooks
  'redrive.firstOutside': 'costs enough for JIT with a million letters (BARTLEBY_PROVE=1)',
  'webhooks.fitJobs':
    'reads the index of all dead jobs without statistics, with 200,000 jobs (BARTLEBY_PROVE=1)',
  'webhooks.removeExhausted':
    'reads the index of all dead jobs without statistics, with 200,000 jobs (BARTLEBY_PROVE=1)',
  'webhooks.queuedJobs': `${SORTS_ALL}, with 200,000 jobs (BARTLEBY_PROVE=1)`,
  'webhooks.listMessages.newer': SORTS_ALL,
  'webhooks.listMessages.older': SORTS_ALL,
  'webhooks.listScheduledAndSent.newer': SORTS_ALL,
  'webhooks.listScheduledAndSent.older': SORTS_ALL,
  'webhooks.listWaiting.newer': SORTS_ALL,
  'webhooks.listWaiting.older': SORTS_ALL,
}
