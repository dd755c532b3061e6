/** `bartleby redrive plan`: what would be done to which letters; with `--start` it is done at once. */
import type { Command } from 'commander'
import type { RedriveDetail } from '../../client/redrive-types.ts'
import { CommandFailure, EXIT, usage } from '../exit.ts'
import { filterOf, QUERY_HELP } from '../letters/filter-flags.ts'
import { wholeNumber } from '../queues/connection.ts'
import { styleOf } from '../style.ts'
import { printable, type Terminal } from '../terminal.ts'
import { confirmPlan, madePlan } from './confirm-plan.ts'
import {
  type Desk,
  type RedriveFlags,
  redriveCommand,
  type WatchFlags,
  waitMsOf,
  withDesk,
  withWaitFlags,
} from './connection.ts'
import { idsOf } from './ids.ts'
import { type Chosen, type PlanFlags, planBody, withPlanFlags } from './plan-flags.ts'
import { nextStep, planText } from './plan-text.ts'
import { repairOf } from './repair-flags.ts'
import { afterStart, isWatching } from './start.ts'

interface Flags extends PlanFlags, RedriveFlags, WatchFlags {
  readonly show: string
  readonly start?: boolean
  readonly watch?: boolean
  readonly yes?: boolean
}

export const planCommand = (terminal: Terminal): Command =>
  withWaitFlags(
    withPlanFlags(
      redriveCommand(
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
      ),
    ),
  )
    .option('--show <n>', 'show so many letters as they would be sent, at most 20', '3')
    .option('--start', 'start it at once, after the number of letters was confirmed')
    .option('--watch', 'with --start: watch it to its end')
    .option('-y, --yes', 'with --start: do not ask')
    .addHelpText('after', HELP)
    .action((words: string[], flags: Flags) =>
      withDesk(flags, terminal, (desk) => planAndStart(desk, words, flags, terminal), {
        carriesOut: isWatching(flags),
      }),
    )

const HELP = `
${QUERY_HELP}

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
  3  there is no letter to plan for`

async function planAndStart(
  desk: Desk,
  words: readonly string[],
  flags: Flags,
  terminal: Terminal,
): Promise<void> {
  const { office, place } = desk
  const show = wholeNumber('--show', flags.show, 0) ?? 0
  const waitMs = waitMsOf(flags)
  if (!flags.start && (flags.watch || flags.wait || flags.yes))
    throw usage('--watch, --wait and --yes are for --start')
  const repair = await repairOf(flags, terminal)
  const chosen = await chosenOf(desk, words, flags, terminal)
  const begun = await office.redrives.plan(planBody(chosen, flags, repair))
  const plan = await madePlan(office, begun, terminal)
  const text = () =>
    planText(plan, { letters: show, width: terminal.screen?.columns, style: styleOf(terminal) })
  if (plan.counts.planned === 0) return nothing(plan, flags, text, terminal)
  if (!flags.start) {
    return terminal.out(flags.json ? JSON.stringify(plan, null, 2) : `${text()}\n\n${nextStep(plan, place)}`)
  }
  if (!flags.json) terminal.out(`${text()}\n`)
  await confirmPlan(plan, flags, terminal)
  const manner = { watch: flags.watch ?? false, waitMs, json: flags.json ?? false }
  await afterStart(desk, await office.redrives.start(plan.id), manner, terminal)
}

function nothing(plan: RedriveDetail, { json }: Flags, text: () => string, terminal: Terminal): never {
  terminal.out(json ? JSON.stringify(plan, null, 2) : text())
  throw new CommandFailure(EXIT.nothing, `there is nothing to start; ${printable(lowered(plan.sentence))}`)
}

const lowered = (sentence: string): string => sentence.charAt(0).toLowerCase() + sentence.slice(1)

async function chosenOf(
  { office }: Desk,
  words: readonly string[],
  flags: Flags,
  terminal: Terminal,
): Promise<Chosen> {
  const filter = filterOf(flags, words)
  const isFiltered = Object.keys(filter).length > 0
  const isNamed = flags.id !== undefined || flags.idsFile !== undefined
  if (isFiltered && isNamed) throw usage('name letters by --id and --ids-file, or by a query, not both')
  const ids = await idsOf(office, flags, terminal)
  if (ids !== undefined) return { ids }
  if (!isFiltered)
    throw usage("say which letters, by a query such as 'signature:1-4f2a9c' or --id; all: status:pending")
  return { filter }
}
