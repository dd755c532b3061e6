/** What commands on one letter or many have in common: flags, and whether they name one letter or many. */
import type { Command } from 'commander'
import type { LetterKey } from '../../client/letter-types.ts'
import type { LetterParameters } from '../../core/letter-query.ts'
import { usage } from '../exit.ts'
import type { Deed } from './deeds.ts'
import { type FilterFlags, filterOf, withFilterFlags } from './filter-flags.ts'

export interface ActFlags extends FilterFlags {
  readonly notes?: string
  readonly yes?: boolean
  readonly limit?: string
  readonly dryRun?: boolean
  readonly wait?: boolean
  readonly waitTimeout?: string
  readonly payloadFile?: string
}

/** Adds the flags for many letters. */
export const withManyFlags = (command: Command): Command =>
  withFilterFlags(command)
    .option('--limit <n>', 'many letters: at most so many, the newest first')
    .option('-y, --yes', 'many letters: do not ask')

export type Target =
  | { readonly kind: 'one'; readonly letter: LetterKey }
  | { readonly kind: 'many'; readonly filter: LetterParameters }

/** One letter by its name, or those that match. */
export function targetOf(deed: Deed, names: readonly (string | undefined)[], flags: ActFlags): Target {
  const [engine, rowKey] = names
  const filter = filterOf(flags)
  const isFiltered = Object.keys(filter).length > 0
  if (engine !== undefined) {
    if (rowKey === undefined) throw usage(`'${engine}' is no letter; name one by engine and row key`)
    if (isFiltered) throw usage('name one letter, or many by a query or filters, not both')
    return { kind: 'one', letter: { engine, rowKey } }
  }
  const example = `--query 'status:${deed.from[0]?.toLowerCase()}'`
  if (!isFiltered) throw usage(`name a letter by engine and row key, or many by a query such as ${example}`)
  return { kind: 'many', filter: withStatus(deed, filter) }
}

/** Which status letters have before it need not be said where there is only one. */
function withStatus({ name, from }: Deed, filter: LetterParameters): LetterParameters {
  const [first = 'Pending', ...others] = from
  const status = filter.status ?? (others.length === 0 ? first : undefined)
  const needed = from.map((each) => each.toLowerCase())
  if (status === undefined) {
    throw usage(`say which letters to ${name}: ${needed.map((each) => `status:${each}`).join(' or ')}`)
  }
  if (!from.some((each) => each === status)) {
    throw usage(
      `only ${needed.join(' and ')} letters can be ${PAST[name]}, and the filter asks for ${status}`,
    )
  }
  return { ...filter, status }
}

const PAST: Readonly<Record<Deed['name'], string>> = {
  retry: 'retried',
  discard: 'discarded',
  restore: 'restored',
}
