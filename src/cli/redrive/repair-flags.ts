/** How letters are repaired on their way: a patch, a mapping and headers, from flags and files. */
import { existsSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import type { RedriveRepair } from '../../client/redrive-types.ts'
import { parseExactly } from '../../redrive/repair/exact-json.ts'
import { reasonOf, usage } from '../exit.ts'
import type { Terminal } from '../terminal.ts'
import { readNamed } from './read-argument.ts'

export interface RepairFlags {
  readonly patch?: string
  readonly map?: string
  readonly setHeader?: Readonly<Record<string, string>>
  readonly removeHeader?: readonly string[]
}

/** Adds them to a command. */
export const withRepairFlags = (command: Command): Command =>
  command
    .option('--patch <file|json>', 'change every payload by this JSON Patch (RFC 6902); - reads stdin')
    .option('--map <file|expression>', 'make every payload anew by this JSONata expression; - reads stdin')
    .option('--set-header <name=value>', 'send this encoding, kind or reference; can be repeated', header)
    .option(
      '--remove-header <name>',
      'send none of it; can be repeated',
      (name: string, before: readonly string[] = []): readonly string[] => [...before, name],
    )

function header(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError('Write it as name=value, as in kind=order.')
  return { ...before, [name]: value }
}

/** The recipe that the flags describe; undefined when they describe none. */
export async function repairOf(flags: RepairFlags, terminal: Terminal): Promise<RedriveRepair | undefined> {
  const { patch, map, setHeader, removeHeader } = flags
  if (patch !== undefined && map !== undefined) throw usage('--patch and --map exclude each other')
  const headers =
    setHeader === undefined && removeHeader === undefined
      ? undefined
      : { ...(setHeader && { set: setHeader }), ...(removeHeader && { remove: removeHeader }) }
  if (patch === undefined && map === undefined && headers === undefined) return undefined
  const repair = {
    ...(patch !== undefined && { patch: await patchOf(patch, terminal) }),
    ...(map !== undefined && { mapping: await mappingOf(map, terminal) }),
    ...(headers !== undefined && { headers }),
  }
  // Whether it is one is for the server to say, which knows the language of recipes.
  return repair as RedriveRepair
}

/** A patch is a list: what begins like one is the patch itself. */
async function patchOf(given: string, terminal: Terminal): Promise<unknown> {
  const text = given.trimStart().startsWith('[') ? given : await readNamed('--patch', given, terminal)
  try {
    // All digits of its numbers go to the server.
    return parseExactly(text)
  } catch (error) {
    throw usage(`--patch is no JSON: ${reasonOf(error)}`)
  }
}

/** Any text may be an expression, so that a file is meant only where there is one of that name. */
async function mappingOf(given: string, terminal: Terminal): Promise<string> {
  const isFile = given === '-' || existsSync(given)
  return isFile ? (await readNamed('--map', given, terminal)).trim() : given
}
