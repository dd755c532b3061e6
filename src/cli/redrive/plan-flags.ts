/** The flags and files of `redrive plan`, as the plan that is asked of the server. */
import { existsSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { LetterFilter, LetterKey } from '../../client/letter-types.ts'
import type {
  RedriveCanary,
  RedrivePlanRequest,
  RedriveRepair,
  RedriveStopRule,
} from '../../client/redrives.ts'
import { parseExactly } from '../../core/json/exact.ts'
import type { LetterParameters } from '../../core/letter-query.ts'
import {
  REDRIVE_ACTIONS,
  REDRIVE_ORDERS,
  type RedriveAction,
  type RedriveOrder,
} from '../../redrive/shapes.ts'
import { reasonOf, usage } from '../../terminal/exit.ts'
import { decimal, durationNs, given, pairs, readText } from '../../terminal/flags.ts'
import type { Desk, TextFlags } from '../../terminal/office.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { type FilterFlags, filterFlags, filterOf, isRowKey, letterNamed } from '../letters/which.ts'

export interface PlanFlags
  extends FilterFlags,
    RepairFlags,
    TextFlags<'idsFile' | 'to' | 'rate' | 'canary' | 'canaryWait' | 'stop' | 'reason'> {
  readonly id?: readonly string[]
  readonly action?: RedriveAction
  readonly order?: RedriveOrder
}

const another = (text: string, before: readonly string[] = []): readonly string[] => [...before, text]

const header = pairs('kind=order', /^([^=]+)=(.*)$/s)

/** Which letters, what is done, how, and repairs on the way. */
export function planFlags(command: Command): void {
  filterFlags(command)
  command
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
    .option('--reason <text>', 'why; kept with each letter, and required to discard')
    .option('--patch <file|json>', 'change every payload by this JSON Patch (RFC 6902); - reads stdin')
    .option('--map <file|expression>', 'make every payload anew by this JSONata expression; - reads stdin')
    .option('--set-header <name=value>', 'send this encoding, kind or reference; can be repeated', header)
    .option('--remove-header <name>', 'send none of it; can be repeated', another)
}

export type Chosen = { readonly filter: LetterParameters } | { readonly ids: readonly LetterKey[] }

/** `repair` is read before, because it may lie in files. */
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
  const { to: queue, rate, stop, order, reason } = flags
  return {
    ...('ids' in chosen ? { ids: chosen.ids } : { filter: filterBody(chosen.filter) }),
    action,
    ...given({ queue, repair, canary: canaryOf(flags), order, reason }),
    ...(rate !== undefined && { rate: rateOf('--rate', rate) }),
    ...(stop !== undefined && { stopRule: stopRuleOf(stop) }),
  }
}

/** Numbers are numbers in JSON. */
function filterBody({ minAttempts, ...texts }: LetterParameters): LetterFilter {
  const number = Number(minAttempts)
  const attempts =
    minAttempts === undefined ? {} : { minAttempts: Number.isNaN(number) ? minAttempts : number }
  // The server refuses unknown values, and names those there are.
  return { ...texts, ...attempts } as LetterFilter
}

/** The server knows the maximum. */
export const rateOf = (name: string, text: string): number =>
  decimal(name, text, 'letters a second above 0, such as 50 or 0.5')

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
    ...(canaryWait !== undefined && { waitSeconds: waitSeconds(canaryWait) }),
  }
}

const SECOND_NS = 1_000_000_000n

const waitSeconds = (text: string): number => {
  const expected = 'of at least 1s, such as 30s, 10m or 1h'
  return Number(durationNs('--canary-wait', text, expected, SECOND_NS) / SECOND_NS)
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

/** The server refuses more; a query can name any number. */
export const MOST_IDS = 10_000

export async function chosenBy(desk: Desk, words: readonly string[], flags: PlanFlags): Promise<Chosen> {
  const filter = filterOf(flags, words)
  const isFiltered = Object.keys(filter).length > 0
  const isNamed = flags.id !== undefined || flags.idsFile !== undefined
  if (isFiltered && isNamed) throw usage('name letters by --id and --ids-file, or by a query, not both')
  if (isNamed) return { ids: await idsOf(desk, flags) }
  if (!isFiltered)
    throw usage("say which letters, by a query such as 'signature:1-4f2a9c' or --id; all: status:pending")
  return { filter }
}

/** Named by flags or in a file. */
async function idsOf(desk: Desk, { id = [], idsFile }: PlanFlags): Promise<readonly LetterKey[]> {
  const named: LetterKey[] = []
  for (const text of id) {
    const key = keyOf(text)
    if (key === null) throw usage(`--id is '${text}'; expected ENGINE/KEY`)
    // Lists show instances, which name a letter where they have one. For a file that would be too many calls.
    named.push(isRowKey(key.rowKey) ? key : keyOnly(await letterNamed(desk, key)))
  }
  const ids = [
    ...named,
    ...(idsFile === undefined ? [] : keysIn(await readText('--ids-file', idsFile, desk.terminal))),
  ]
  if (ids.length === 0) throw usage('--ids-file names no letters')
  if (ids.length > MOST_IDS)
    throw usage(`${ids.length} letters are named; name at most ${MOST_IDS}, or those that match a query`)
  return ids
}

const keyOnly = ({ engine, rowKey }: LetterKey): LetterKey => ({ engine, rowKey })

/** Each line is `ENGINE/KEY`, or JSON with engine and rowKey as `letters export` writes it. */
export function keysIn(text: string): readonly LetterKey[] {
  return text.split('\n').flatMap((line, index) => {
    const said = line.trim()
    if (said === '') return []
    const key = said.startsWith('{') ? keyInJson(said) : keyOf(said)
    if (key !== null) return [key]
    throw usage(
      `line ${index + 1} of --ids-file is no letter; expected ENGINE/KEY, or JSON with engine and rowKey`,
    )
  })
}

/** Engines have no slash in their names; row keys may. */
function keyOf(text: string): LetterKey | null {
  const [, engine, rowKey] = /^([^/\s]+)\/(.+)$/s.exec(text) ?? []
  return engine === undefined || rowKey === undefined ? null : { engine, rowKey }
}

function keyInJson(text: string): LetterKey | null {
  try {
    const { engine, rowKey } = JSON.parse(text)
    return typeof engine === 'string' && typeof rowKey === 'string' ? { engine, rowKey } : null
  } catch {
    return null
  }
}

interface RepairFlags extends TextFlags<'patch' | 'map'> {
  readonly setHeader?: Readonly<Record<string, string>>
  readonly removeHeader?: readonly string[]
}

/** Undefined when there is none. */
export async function repairOf(flags: RepairFlags, terminal: Terminal): Promise<RedriveRepair | undefined> {
  const { patch, map, setHeader, removeHeader } = flags
  if (patch !== undefined && map !== undefined) throw usage('--patch and --map exclude each other')
  const headers = given({ set: setHeader, remove: removeHeader })
  const repair = given({
    patch: patch === undefined ? undefined : await patchOf(patch, terminal),
    mapping: map === undefined ? undefined : await mappingOf(map, terminal),
    headers: Object.keys(headers).length === 0 ? undefined : headers,
  })
  if (Object.keys(repair).length === 0) return undefined
  // The server knows the language of recipes.
  return repair as RedriveRepair
}

/** What begins like a list is the patch itself, else a file. */
async function patchOf(given: string, terminal: Terminal): Promise<unknown> {
  const text = given.trimStart().startsWith('[') ? given : await readText('--patch', given, terminal)
  try {
    // Keeps all digits of numbers.
    return parseExactly(text)
  } catch (error) {
    throw usage(`--patch is no JSON: ${reasonOf(error)}`)
  }
}

/** Any text may be an expression: a file only where there is one of that name. */
async function mappingOf(given: string, terminal: Terminal): Promise<string> {
  const isFile = given === '-' || existsSync(given)
  return isFile ? (await readText('--map', given, terminal)).trim() : given
}
