/** `bartleby redrive plan`: what would be done to which letters; with `--start` it is done at once. */
import { setTimeout as pause } from 'node:timers/promises'
import type { RedriveDetail, RedrivePlanRequest } from '../../client/redrives.ts'
import { failed, nothing, usage } from '../../terminal/exit.ts'
import { confirmCount, wholeNumber } from '../../terminal/flags.ts'
import type { Desk } from '../../terminal/office.ts'
import { printable, type Terminal } from '../../terminal/terminal.ts'
import { lettersText } from '../../terminal/words.ts'
import { QUERY_HELP } from '../letters/which.ts'
import { chosenBy, type PlanFlags, planBody, planFlags, repairOf } from './plan-flags.ts'
import { afterStart, redriveCommand, type WatchFlags, waitFlags, waitMsOf } from './start.ts'
import { chosenText, leftOut, nextStep, planText } from './text.ts'

export const planCommand = redriveCommand(
  'plan [query...]',
  'Plan an act on many letters, and show what it would do. Nothing is changed; the plan can be started for half an hour.',
  [
    "plan 'signature:1-4f2a9c'",
    "plan 'queue:orders age:<1d' --rate 50 --canary 10 --stop 20/100",
    "plan 'queue:orders' --canary 10:80 --start --watch",
    "plan 'queue:orders' --to orders-repaired --set-header kind=order-v2",
    `plan 'queue:orders' --patch '[{"op":"replace","path":"/currency","value":"EUR"}]'`,
    "plan 'queue:orders' --map fix.jsonata --show 10",
    "plan 'engine:hmac age:>30d' --action discard --reason 'shop closed'",
    "plan 'status:expired engine:hmac' --action restore --reason 'still needed'",
    'plan --id hmac/vault-7 --id hmac/vault-8',
  ],
)
  .adding<PlanFlags>(planFlags)
  .adding<WatchFlags>(waitFlags)
  .option('--show <n>', 'show so many letters as they would be sent, at most 20', '3')
  .option('--start', 'start it at once, after the number of letters was confirmed')
  .option('--watch', 'with --start: watch it to its end')
  .option('-y, --yes', 'with --start: do not ask')
  .help(`${QUERY_HELP}

The plan is a frozen set: these letters, as they are now. What has changed when its turn comes is skipped.
  --rate 50            at most fifty letters a second to each destination
  --canary 10:80       ten letters first; the rest follows when 80% of them are confirmed, and it stops otherwise
  --stop 20/100        stop when more than 20% of the last 100 outcomes were deaths
  --order key          letters of a key leave in the order of their capture, different keys at once; capture: one after the
                       other for each destination; none: as it comes
Repairs change what is sent, never the letter on file:
  --patch              operations of JSON Patch (RFC 6902); everything they leave alone stays as it is, byte for byte
  --map                an expression of JSONata: the payload is its input, what it gives is sent
  --set-header         encoding, kind or reference of the item
Letters of a list or an export can be named one by one, at most 10,000:
  $ bartleby letters export 'status:pending engine:hmac' | bartleby redrive plan --ids-file -
A value of --map is read as a file where there is one of that name; --patch is a file unless it begins with [.

Exit codes:
  0  planned; with --start started; with --watch done, nothing failed or returned; with --wait all confirmed
  1  failed, stopped, cancelled, or some letters failed or returned
  2  wrong usage
  3  there is no letter to plan for`)
  .work(async (desk, words, flags) => {
    const { terminal, json, redrives, print } = desk
    const letters = wholeNumber('--show', flags.show, 0)
    const waitMs = waitMsOf(flags)
    if (!flags.start && (flags.watch || flags.wait || flags.yes))
      throw usage('--watch, --wait and --yes are for --start')
    const repair = await repairOf(flags, terminal)
    const plan = await makePlan(desk, planBody(await chosenBy(desk, words, flags), flags, repair))
    const width = terminal.screen?.columns
    if (plan.counts.planned === 0) {
      print(plan, (_, style) => planText(plan, { letters, width, style }))
      throw nothing(`there is nothing to start; ${printable(lowered(plan.sentence))}`)
    }
    const next = flags.start ? '' : `\n${nextStep(plan, desk.place)}`
    if (!flags.start || !json)
      print(plan, (_, style) => `${planText(plan, { letters, width, style })}\n${next}`)
    if (!flags.start) return
    await confirmPlan(plan, flags, terminal)
    await afterStart(desk, await redrives.start(plan.id), flags.watch, waitMs)
  })

const lowered = (sentence: string): string => sentence.charAt(0).toLowerCase() + sentence.slice(1)

const LOOK_MS = 1_000

/** Waits for a plan that takes longer than a request. Fails when it cannot be made. */
export async function makePlan(
  { redrives, terminal }: Desk,
  request: RedrivePlanRequest,
): Promise<RedriveDetail> {
  let plan = await redrives.plan(request)
  let told = ''
  while (plan.state === 'planning') {
    if (plan.sentence !== told) terminal.err(printable(plan.sentence))
    told = plan.sentence
    await pause(LOOK_MS)
    plan = await redrives.read(plan.id)
  }
  if (plan.state === 'stopped' || plan.state === 'cancelled') throw failed(printable(plan.sentence))
  return plan
}

/** Goes on only with `--yes`, or when a person types the number. */
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
