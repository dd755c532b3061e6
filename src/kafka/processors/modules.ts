/** Loads the modules of processors, in their thread, and says what is wrong with them so that it can be put right. */
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { describeError } from '../../core/thrown.ts'
import type { ModuleExport } from './calls.ts'
import type { Processor, When } from './processor.ts'

export interface LoadedEntry {
  readonly run: Processor
  readonly when: When | null
}

export type Loaded =
  | { readonly entries: readonly LoadedEntry[]; readonly problems: readonly [] }
  | { readonly entries: null; readonly problems: readonly string[] }

/** All entries, or what is wrong with them, each by its key in the configuration. */
export async function loadModules(given: readonly ModuleExport[]): Promise<Loaded> {
  const entries: LoadedEntry[] = []
  const problems: string[] = []
  for (const [index, one] of given.entries()) {
    const loaded = await loadEntry(one)
    if ('problem' in loaded) problems.push(`kafka.processors[${index}].${loaded.problem}`)
    else entries.push(loaded)
  }
  return problems.length > 0 ? { entries: null, problems } : { entries, problems: [] }
}

async function loadEntry(given: ModuleExport): Promise<LoadedEntry | { readonly problem: string }> {
  const { module, export: name } = given
  if (!existsSync(module)) return { problem: `module: '${module}' does not exist` }
  if (module.endsWith('.ts') && process.features.typescript === false) {
    return { problem: `module: '${module}' is TypeScript, and this Node does not strip types` }
  }
  let namespace: Readonly<Record<string, unknown>>
  try {
    // What a module gives is not known before it is looked at.
    namespace = (await import(pathToFileURL(module).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    const { errorClass, errorMessage } = describeError(error)
    return { problem: `module: '${module}' cannot be loaded: ${errorClass}: ${errorMessage.slice(0, 1_000)}` }
  }
  const run = exportOf(namespace, name)
  const when = exportOf(namespace, 'when')
  if (run === undefined) return { problem: `export: '${module}' has no export '${name}'` }
  if (!isFunction<Processor>(run)) return { problem: `export: '${name}' of '${module}' is no function` }
  if (when === undefined) return { run, when: null }
  if (!isFunction<When>(when)) return { problem: `module: 'when' of '${module}' is no function` }
  return { run, when }
}

/**
 * An export by its name. What CommonJS exports is the default export as a whole, and only some of its members are found by their names;
 * `exports.default`, as compilers write it, is meant to be the default.
 */
function exportOf(namespace: Readonly<Record<string, unknown>>, name: string): unknown {
  const common = namespace['module.exports']
  const isObject = (typeof common === 'object' && common !== null) || typeof common === 'function'
  if (isObject && Object.hasOwn(common, name)) {
    // It has such a member.
    return (common as Readonly<Record<string, unknown>>)[name]
  }
  return Object.hasOwn(namespace, name) ? namespace[name] : undefined
}

/** What it takes and gives is checked when it is called. */
const isFunction = <Kind extends Processor | When>(value: unknown): value is Kind =>
  typeof value === 'function'
