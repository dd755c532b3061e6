/** Values of flags: numbers, durations, files, and confirmations. A wrong one ends the command with words. */
import { readFile } from 'node:fs/promises'
import { InvalidArgumentError } from 'commander'
import { parseGoDuration } from '../core/duration.ts'
import { failed, reasonOf, usage } from './exit.ts'
import { readAll, type Terminal } from './terminal.ts'

/** Undefined when it was not given. */
export function wholeNumber(flag: string, text: string, least: number): number
export function wholeNumber(flag: string, text: string | undefined, least: number): number | undefined
export function wholeNumber(flag: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,9}$/.test(text) || Number(text) < least)
    throw usage(`${flag} is '${text}'; expected a whole number of at least ${least}`)
  return Number(text)
}

/** `expected` describes what is allowed. */
export function decimal(flag: string, text: string, expected: string, least = Number.MIN_VALUE): number {
  const number = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : 0
  if (number < least) throw usage(`${flag} is '${text}'; expected ${expected}`)
  return number
}

/** In nanoseconds. */
export function durationNs(flag: string, text: string, expected: string, least = 0n): bigint {
  const duration = parseGoDuration(text)
  if (!duration.ok || duration.ns < least)
    throw usage(`${flag} is '${text}'; expected a duration ${expected}`)
  return duration.ns
}

/** `--wait-timeout` in milliseconds. */
export const waitTimeoutMs = (text = '1m'): number =>
  Number(durationNs('--wait-timeout', text, 'such as 30s, 5m or 1h') / 1_000_000n)

/** `-` is stdin. */
export async function readNamed(flag: string, file: string, terminal: Pick<Terminal, 'stdin'>) {
  try {
    return file === '-' ? await readAll(terminal.stdin) : await readFile(file)
  } catch (error) {
    throw usage(`${flag} cannot be read: ${reasonOf(error)}`)
  }
}

export async function readText(
  flag: string,
  file: string,
  terminal: Pick<Terminal, 'stdin'>,
): Promise<string> {
  const bytes = await readNamed(flag, file, terminal)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw usage(`${flag} cannot be read: ${reasonOf(error)}`)
  }
}

/** Goes on only with `--yes`, or when a person types the name. */
export async function confirmName(
  deed: string,
  { kind, name }: { readonly kind: string; readonly name: string },
  yes: boolean | undefined,
  terminal: Terminal,
): Promise<void> {
  if (!yes) await insist(deed, `${kind}'s name`, (answer) => answer.trim() === name, terminal)
}

/** The same with the number of letters, which is printed in any case. */
export async function confirmCount(
  deed: string,
  count: number,
  { yes, json }: { readonly yes?: boolean; readonly json?: boolean },
  terminal: Terminal,
): Promise<void> {
  if (!yes)
    await insist(deed, 'number', (answer) => answer.replace(/[\s,.]/g, '') === String(count), terminal)
  else if (!json) terminal.err(`this will ${deed}`)
}

async function insist(
  deed: string,
  what: string,
  isMeant: (answer: string) => boolean,
  terminal: Terminal,
): Promise<void> {
  if (!terminal.stdin.isTTY) throw usage(`this will ${deed}; add --yes to go on`)
  const answer = await terminal.ask(`This will ${deed}. Type the ${what} to go on: `)
  if (!isMeant(answer)) throw failed('nothing was changed')
}

export const given = <All extends object>(all: All) =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as {
    [Name in keyof All]?: Exclude<All[Name], undefined>
  }

type Pairs = Readonly<Record<string, string>>

/** A repeatable `name=value`; `shape` says what a value may be. */
export const pairs =
  (example: string, shape = /^([^=]+)=(.+)$/s) =>
  (text: string, before: Pairs = {}): Pairs => {
    const [, name, value] = shape.exec(text) ?? []
    if (name === undefined || value === undefined)
      throw new InvalidArgumentError(`Write it as name=value, as in ${example}.`)
    return { ...before, [name]: value }
  }
