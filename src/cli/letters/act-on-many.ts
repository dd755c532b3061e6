/** A deed on all letters that match, as a redrive of the server: planned, agreed to, started and watched to its end. */
import type { LetterKey } from '../../client/letter-types.ts'
import { formatLetterQuery, type LetterParameters } from '../../core/letter-query.ts'
import { CommandFailure, EXIT, usage } from '../exit.ts'
import { wholeNumber } from '../flags.ts'
import type { Desk, TextFlags } from '../office.ts'
import { confirmPlan, makePlan } from '../redrive/plan.ts'
import { type Chosen, MOST_IDS, planBody } from '../redrive/plan-flags.ts'
import { seeThrough, waitMsOf } from '../redrive/start.ts'
import { planText } from '../redrive/text.ts'
import { printable } from '../terminal.ts'
import { nowMs } from '../words.ts'
import { type FilterFlags, walkLetters } from './which.ts'

export interface ActFlags extends FilterFlags, TextFlags<'notes' | 'limit' | 'waitTimeout' | 'payloadFile'> {
  readonly yes?: boolean
  readonly dryRun?: boolean
  readonly wait?: boolean
}

/** Letters that a dry run shows. */
const PREVIEWED = 3

/** As much of a plan as there is to say when nothing was planned. */
const NOTHING = { numbers: { matched: 0 }, counts: { planned: 0 } }

/** Does it to the letters that match. */
export async function actOnMatching(
  desk: Desk,
  action: 'retry' | 'discard' | 'restore',
  filter: LetterParameters,
  flags: ActFlags,
): Promise<void> {
  const { terminal, redrives, print } = desk
  if (flags.payloadFile !== undefined) throw usage('--payload-file is for one letter; name it')
  const waitMs = waitMsOf(flags)
  const chosen = await chosenOf(desk, filter, flags.limit)
  const none = () => `no letters match ${printable(formatLetterQuery(filter, nowMs()))}`
  if ('ids' in chosen && chosen.ids.length === 0) return print(NOTHING, none)
  const { notes } = flags
  const terms = { action, ...(notes !== undefined && { reason: notes }) }
  const plan = await makePlan(desk, planBody(chosen, terms, undefined))
  if (plan.numbers.matched === 0) return print(plan, none)
  if (flags.dryRun) {
    const shown = { letters: PREVIEWED, width: terminal.screen?.columns }
    return print(plan, (_, style) => `${planText(plan, { ...shown, style })}\n\nnothing was changed`)
  }
  if (plan.counts.planned === 0) throw new CommandFailure(EXIT.failed, printable(plan.sentence))
  await confirmPlan(plan, flags, terminal)
  await seeThrough(desk, await redrives.start(plan.id), waitMs)
}

/** All that match; or with a limit the newest of them, by name. */
async function chosenOf(
  desk: Desk,
  filter: LetterParameters,
  limitText: string | undefined,
): Promise<Chosen> {
  const limit = wholeNumber('--limit', limitText, 1)
  if (limit === undefined) return { filter }
  if (limit > MOST_IDS)
    throw usage(`--limit is '${limit}'; expected at most ${MOST_IDS}, or none for all that match`)
  const ids: LetterKey[] = []
  for await (const { engine, rowKey } of walkLetters(desk, filter, limit)) ids.push({ engine, rowKey })
  return { ids }
}
