/** How the deltas of webhook counts (tallies.ts) are folded. Those of dead jobs are folded with all letters. */
import { countFold } from '../db/fold.ts'

export const webhookFold = countFold({
  name: 'webhooks.fold',
  lock: 'webhooks.fold',
  deltas: 'bartleby.webhook_deltas',
  totals: 'bartleby.webhook_totals',
  keys: ['subject', 'tally'],
  sums: ['amount'],
})
