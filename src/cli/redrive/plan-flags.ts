/** What `redrive plan` is told, by flags, as the plan that is asked of the server. */
import { type Command, Option } from 'commander'
import type { LetterFilter, LetterKey } from '../../client/letter-types.ts'
import type {
  RedriveCanary,
  RedrivePlanRequest,
  RedriveRepair,
  RedriveStopRule,
} from '../../client/redrive-types.ts'
import { parseGoDuration } from '../../core/duration.ts'
import type { LetterParameters } from '../../core/letter-query.ts'
import {
  REDRIVE_ACTIONS,
  REDRIVE_ORDERS,
  type RedriveAction,
  type RedriveOrder,
} from '../../redrive/redrive.ts'
import { usage } from '../exit.ts'
import { type FilterFlags, withFilterFlags } from '../letters/filter-flags.ts'
import { type RepairFlags, withRepairFlags } from './repair-flags.ts'

export interface PlanFlags extends FilterFlags, RepairFlags {
  readonly id?: readonly string[]
  readonly idsFile?: string
  readonly action?: RedriveAction
  readonly to?: string
  readonly rate?: string
  readonly canary?: string
  readonly canaryWait?: string
  readonly stop?: string
  readonly order?: RedriveOrder
  readonly reason?: string
}

/** Adds the flags that say which letters, what is done to them, and how. */
export const withPlanFlags = (command: Command): Command =>
  withRepairFlags(
    withFilterFlags(command)
      .option('--id <engine/key>', 'this letter, by engine and row key; can be repeated', another)
      .option(
        '--ids-file <file>',
        'the letters of this file, one ENGINE/KEY or exported letter a line; - reads stdin',
      )
      .addOption(
        new Option('--action <action>', 'what is done: retry unless given, or move with --to').choices(
          REDRIVE_ACTIONS,
        ),
      )
      .option('--to <queue>', 'move them to this queue')
      .option('--rate <n>', 'at most so many letters a second to each destination; fractions are allowed')
      .option(
        '--canary <n[:percent]>',
        'send so many first, and go on when that part of them, or all, are confirmed',
      )
      .option(
        '--canary-wait <duration>',
        'how long the first are waited for before it pauses; 10m unless given',
      )
      .option(
        '--stop <percent/of>',
        'stop when more than that part of the last so many came back, such as 20/100',
      )
      .addOption(
        new Option(
          '--order <order>',
          'what goes out in the order of capture: key (the default), capture, none',
        ).choices(REDRIVE_ORDERS),
      )
      .option('--reason <text>', 'why; kept with each letter, and required to discard'),
  )

const another = (text: string, before: readonly string[] = []): readonly string[] => [...before, text]

/** Which letters: those that match, or these. */
export type Chosen = { readonly filter: LetterParameters } | { readonly ids: readonly LetterKey[] }

/** The plan that the flags ask for. `repair` is read from theirs before, because it may lie in files. */
export function planBody(
  chosen: Chosen,
  flags: PlanFlags,
  repair: RedriveRepair | undefined,
): RedrivePlanRequest {
  const action = flags.action ?? (flags.to === undefined ? 'retry' : 'move')
  if (action === 'move' && flags.to === undefined) throw usage('say where they are moved: --to QUEUE')
  if (action !== 'move' && flags.to !== undefined) throw usage(`--to is for --action move, not for ${action}`)
  if (action === 'discard' && (flags.reason ?? '').trim() === '')
    throw usage('say why the letters are discarded: --reason TEXT')
  const canary = canaryOf(flags)
  return {
    ...('ids' in chosen ? { ids: chosen.ids } : { filter: filterBody(chosen.filter) }),
    action,
    ...(flags.to !== undefined && { queue: flags.to }),
    ...(repair !== undefined && { repair }),
    ...(flags.rate !== undefined && { rate: rateOf('--rate', flags.rate) }),
    ...(canary !== undefined && { canary }),
    ...(flags.stop !== undefined && { stopRule: stopRuleOf(flags.stop) }),
    ...(flags.order !== undefined && { order: flags.order }),
    ...(flags.reason !== undefined && { reason: flags.reason }),
  }
}

/** The filter as JSON: what is a number is one there. */
function filterBody({ minAttempts, ...texts }: LetterParameters): LetterFilter {
  const number = Number(minAttempts)
  const attempts =
    minAttempts === undefined ? {} : { minAttempts: Number.isNaN(number) ? minAttempts : number }
  // A value that there is not is for the server to refuse: it says which there are.
  return { ...texts, ...attempts } as LetterFilter
}

/** Letters a second. How many these may be at most is for the server to say. */
export function rateOf(name: string, text: string): number {
  const rate = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : 0
  if (rate <= 0) throw usage(`${name} is '${text}'; expected letters a second above 0, such as 50 or 0.5`)
  return rate
}

const CANARY = /^(\d{1,6})(?::(\d{1,3}(?:\.\d{1,6})?)%?)?$/

function canaryOf({ canary, canaryWait }: PlanFlags): Partial<RedriveCanary> | undefined {
  if (canary === undefined) {
    if (canaryWait !== undefined) throw usage('--canary-wait is for --canary; say how many letters go first')
    return undefined
  }
  const [, letters, percent] = CANARY.exec(canary) ?? []
  if (letters === undefined) {
    throw usage(
      `--canary is '${canary}'; expected how many letters go first, and the part that must be confirmed, such as 10 or 10:80`,
    )
  }
  return {
    letters: Number(letters),
    ...(percent !== undefined && { confirmPercent: Number(percent) }),
    ...(canaryWait !== undefined && { waitSeconds: secondsOf(canaryWait) }),
  }
}

function secondsOf(text: string): number {
  const duration = parseGoDuration(text)
  if (!duration.ok || duration.ns < 1_000_000_000n) {
    throw usage(`--canary-wait is '${text}'; expected a duration of at least 1s, such as 30s, 10m or 1h`)
  }
  return Number(duration.ns / 1_000_000_000n)
}

const STOP = /^(\d{1,3}(?:\.\d{1,6})?)%?\/(\d{1,6})$/

function stopRuleOf(text: string): RedriveStopRule {
  const [, percent, of] = STOP.exec(text) ?? []
  if (percent === undefined || of === undefined) {
    throw usage(
      `--stop is '${text}'; expected a part and of how many outcomes, such as 20/100: more than 20% of the last 100`,
    )
  }
  return { percent: Number(percent), of: Number(of) }
}
