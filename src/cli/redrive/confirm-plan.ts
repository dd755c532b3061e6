/** Before a plan is started: waits until it is made, says what will be done to how many letters, and goes on when that is what is meant. */
import { setTimeout as pause } from 'node:timers/promises'
import type { RedriveDetail } from '../../client/redrive-types.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import { confirmCount } from '../letters/confirm-count.ts'
import type { OfficeServer } from '../office-call.ts'
import { printable, type Terminal } from '../terminal.ts'
import { leftOut, lettersText } from './numbers.ts'
import { chosenText } from './terms-text.ts'

const LOOK_MS = 1_000

/** A plan that takes longer than a request is waited for, and how far it is told. Fails when it cannot be made. */
export async function madePlan(
  office: OfficeServer,
  begun: RedriveDetail,
  terminal: Terminal,
): Promise<RedriveDetail> {
  let plan = begun
  let told = ''
  while (plan.state === 'planning') {
    if (plan.sentence !== told) terminal.err(printable(plan.sentence))
    told = plan.sentence
    await pause(LOOK_MS)
    plan = await office.redrives.read(plan.id)
  }
  if (plan.state === 'stopped' || plan.state === 'cancelled')
    throw new CommandFailure(EXIT.failed, printable(plan.sentence))
  return plan
}

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
