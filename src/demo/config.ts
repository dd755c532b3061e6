/** The configuration of a demo: address and access are the user's, the sources' sections the demo's own. */
import type { Config } from '../config/index.ts'
import type { Settings } from '../core/settings/given.ts'
import { withDefaults } from '../core/settings/read.ts'
import { SOURCES } from '../sources/index.ts'
import type { SourceModule } from '../sources/source-module.ts'
import type { DemoStory, SourceDemo } from './story/story.ts'

export interface DemoSource {
  readonly module: SourceModule
  readonly demo: SourceDemo<unknown> | undefined
}

export const demoSources = (): Promise<readonly DemoSource[]> =>
  Promise.all(SOURCES.map(async (module) => ({ module, demo: await module.demo?.() })))

export interface DemoTerms {
  /** False: in memory, and nothing is left behind. */
  readonly storeIsGiven: boolean
  /** False: only errors of the server itself are logged. */
  readonly logLevelIsGiven: boolean
}

export function demoConfig(
  config: Config,
  terms: DemoTerms,
  sources: readonly DemoSource[],
  story: DemoStory,
): Config {
  const given: Settings = config
  const sections = sources.flatMap(({ module: { name, settings }, demo }) => {
    if (settings === undefined) return []
    // A source without a part gets defaults: a demo reads no topics of the user's.
    if (demo === undefined) return [[name, withDefaults(settings.schema, undefined)]]
    return [[name, demo.section === undefined ? given[name] : demo.section(given[name], story)]]
  })
  return {
    ...config,
    store: terms.storeIsGiven ? config.store : 'sqlite::memory:',
    log: terms.logLevelIsGiven ? config.log : { ...config.log, level: 'error' },
    console:
      config.console.environment === 'local' ? { environment: 'demo', colour: 'violet' } : config.console,
    ...Object.fromEntries(sections),
  }
}
