/** A deed on all letters that match, as a redrive of the server: planned, agreed to, started and watched to its end. */
import type { LetterKey } from '../../client/letter-types.ts'
import { formatLetterQuery, type LetterParameters } from '../../core/letter-query.ts'
import { CommandFailure, EXIT, usage } from '../exit.ts'
import type { OfficeServer } from '../office-call.ts'
import { wholeNumber } from '../queues/connection.ts'
import { seeThrough } from '../redrive/carry-out.ts'
import { confirmPlan, madePlan } from '../redrive/confirm-plan.ts'
import { MOST_IDS } from '../redrive/ids.ts'
import { type Chosen, planBody } from '../redrive/plan-flags.ts'
import { planText } from '../redrive/plan-text.ts'
import { styleOf } from '../style.ts'
import { printable, type Terminal } from '../terminal.ts'
import { nowMs } from '../times.ts'
import type { ActFlags } from './act-flags.ts'
import type { Deed } from './deeds.ts'
import { walkLetters } from './find.ts'
import { waitTimeoutMs } from './wait-timeout.ts'

/** Letters that a dry run shows. */
const PREVIEWED = 3

/** As much of a plan as there is to say when nothing was planned. */
const NOTHING = { numbers: { matched: 0 }, counts: { planned: 0 } }

/** Does it to the letters that match. */
export async function actOnMatching(
  office: OfficeServer,
  deed: Deed,
  filter: LetterParameters,
  flags: ActFlags,
  terminal: Terminal,
): Promise<void> {
  if (flags.payloadFile !== undefined) throw usage('--payload-file is for one letter; name it')
  const waitMs = waitTimeoutMs(flags.waitTimeout ?? '1m')
  const chosen = await chosenOf(office, filter, flags.limit)
  const none = `no letters match ${printable(formatLetterQuery(filter, nowMs()))}`
  if ('ids' in chosen && chosen.ids.length === 0)
    return terminal.out(flags.json ? JSON.stringify(NOTHING, null, 2) : none)
  const { notes } = flags
  const terms = { action: deed.name, ...(notes !== undefined && { reason: notes }) }
  const begun = await office.redrives.plan(planBody(chosen, terms, undefined))
  const plan = await madePlan(office, begun, terminal)
  const show = (text: string) => terminal.out(flags.json ? JSON.stringify(plan, null, 2) : text)
  if (plan.numbers.matched === 0) return show(none)
  if (flags.dryRun) {
    const shown = { letters: PREVIEWED, width: terminal.screen?.columns, style: styleOf(terminal) }
    return show(`${planText(plan, shown)}\n\nnothing was changed`)
  }
  if (plan.counts.planned === 0) throw new CommandFailure(EXIT.failed, printable(plan.sentence))
  await confirmPlan(plan, flags, terminal)
  await seeThrough(
    office,
    await office.redrives.start(plan.id),
    {
      waitMs: flags.wait ? waitMs : null,
      json: flags.json ?? false,
      place: flags.url === undefined ? '' : ` --url ${flags.url}`,
      goesOn: 'the server goes on with it',
    },
    terminal,
  )
}

/** All that match; or with a limit the newest of them, by name. */
async function chosenOf(
  { call }: OfficeServer,
  filter: LetterParameters,
  limitText: string | undefined,
): Promise<Chosen> {
  const limit = wholeNumber('--limit', limitText, 1)
  if (limit === undefined) return { filter }
  if (limit > MOST_IDS)
    throw usage(`--limit is '${limit}'; expected at most ${MOST_IDS}, or none for all that match`)
  const ids: LetterKey[] = []
  for await (const { engine, rowKey } of walkLetters(call, filter, limit)) ids.push({ engine, rowKey })
  return { ids }
}
