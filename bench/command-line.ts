/** What every benchmark of a part reads from its command line: stores, parts, whether numbers are small, whether the result is written. */
import { parseArgs } from 'node:util'
import type { Dialect } from './letters/sql.ts'

const stores: readonly Dialect[] = ['postgres', 'sqlite']

interface Known<Part extends string> {
  readonly usage: string
  readonly parts?: readonly Part[]
  /** Flags of its own: with a value, and without. */
  readonly valued?: readonly string[]
  readonly switches?: readonly string[]
}

export interface CommandLine<Part extends string> {
  readonly stores: readonly Dialect[]
  readonly parts: readonly Part[]
  readonly quick: boolean
  readonly write: boolean
  isOn(name: string): boolean
  /** The whole number, or all of a list of them; undefined when the flag was not given. */
  countsOf(name: string, least: number): readonly number[] | undefined
}

/** Throws an error that names the flag when one is wrong; null means that help was asked for, and given. */
export function readCommandLine<Part extends string>(
  args: readonly string[],
  { usage, parts = [], valued = [], switches = [] }: Known<Part>,
): CommandLine<Part> | null {
  const parsed = parseArgs({
    args: [...args],
    options: Object.fromEntries([
      ...['store', 'only', 'part', ...valued].map((name) => [name, { type: 'string' as const }]),
      ...['quick', 'write', 'help', ...switches].map((name) => [name, { type: 'boolean' as const }]),
    ]),
  })
  const values = new Map(Object.entries<unknown>(parsed.values))
  const isOn = (name: string): boolean => values.get(name) === true
  const textOf = (name: string): string | undefined => {
    const value = values.get(name)
    return typeof value === 'string' ? value : undefined
  }
  if (isOn('help')) {
    console.log(usage)
    return null
  }
  const wrong = (flag: string, what: string): never => {
    throw new Error(`--${flag}: ${what}\n\n${usage}`)
  }
  const among = <T extends string>(flag: string, allowed: readonly T[]): readonly T[] | undefined => {
    const value = textOf(flag)
    if (value === undefined) return undefined
    const found = allowed.filter((each) => each === value)
    return found.length > 0 ? found : wrong(flag, `'${value}' is none of ${allowed.join(', ')}`)
  }
  return {
    stores: among('store', stores) ?? among('only', stores) ?? stores,
    parts: among('part', parts) ?? parts,
    quick: isOn('quick'),
    write: isOn('write'),
    isOn,
    countsOf: (name, least) =>
      textOf(name)
        ?.split(',')
        .map((text) => {
          const count = Number(text.replaceAll('_', ''))
          const isCount = Number.isInteger(count) && count >= least
          return isCount
            ? count
            : wrong(name, `'${text}' is no whole number from ${least.toLocaleString('en')} on`)
        }),
  }
}
