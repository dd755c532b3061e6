/** Before a plan is started: says what will be done to how many letters, and goes on when that is what is meant. */

import type { RedriveDetail } from '../../client/redrive-types.ts'
import { confirmCount } from '../letters/confirm-count.ts'
import { printable, type Terminal } from '../terminal.ts'
import { leftOut, lettersText } from './numbers.ts'
import { chosenText } from './terms-text.ts'

/** Goes on only when `--yes` was given or a person types how many letters it is. */
export function confirmPlan(
  plan: RedriveDetail,
  flags: { readonly yes?: boolean; readonly json?: boolean },
  terminal: Terminal,
): Promise<void> {
  const chosen = chosenText(plan)
  const without = leftOut(plan.numbers)
  const words = [
    deedText(plan),
    ...(chosen === '' ? [] : [` (${chosen})`]),
    ...(without === '' ? [] : [`; left out: ${without}`]),
  ]
  return confirmCount(printable(words.join('')), plan.counts.planned, flags, terminal)
}

function deedText({ action, queue, counts }: RedriveDetail): string {
  const letters = lettersText(counts.planned)
  if (action === 'retry') return `send back ${letters}`
  return action === 'move' ? `move ${letters} to '${queue ?? ''}'` : `${action} ${letters}`
}
