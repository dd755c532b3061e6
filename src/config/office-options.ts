/** What of a configuration an office is opened with: its store, and the section of each source. */
import type { OfficeOptions } from '../office.ts'
import { SECTIONS } from '../sources/settings.ts'
import type { Config } from './schema.ts'

/** `isPassing`: the office is open for one command; what only servers do is left to them. */
export function officeOptionsOf(config: Config, { isPassing = false } = {}): OfficeOptions {
  const { store, postgres, unsupportedStore } = config
  const given: Readonly<Record<string, unknown>> = config
  const sections = SECTIONS.flatMap(({ name, isForServers = false }) =>
    isPassing && isForServers ? [] : [[name, given[name]]],
  )
  return { store, postgres, unsupportedStore, ...Object.fromEntries(sections) }
}
