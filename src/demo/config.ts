/** The configuration of a demo: where it listens and who may come in is the user's, what it delivers is the demo's own. */
import type { Config } from '../config/index.ts'
import type { Settings } from '../core/settings/given.ts'
import { withDefaults } from '../core/settings/read.ts'
import { SOURCES } from '../sources/index.ts'
import type { SourceModule } from '../sources/source-module.ts'
import type { DemoStory, SourceDemo } from './story/story.ts'

/** A source of the list, with what it brings to the demo. */
export interface DemoSource {
  readonly module: SourceModule
  readonly demo: SourceDemo<unknown> | undefined
}

export const demoSources = (): Promise<readonly DemoSource[]> =>
  Promise.all(SOURCES.map(async (module) => ({ module, demo: await module.demo?.() })))

export interface DemoTerms {
  /** The user named a store; without one nothing is left behind. */
  readonly storeIsGiven: boolean
  /** The user chose a log level; without one the log tells only what went wrong with the server itself. */
  readonly logLevelIsGiven: boolean
}

/** The demo's configuration, made of the user's. */
export function demoConfig(
  config: Config,
  terms: DemoTerms,
  sources: readonly DemoSource[],
  story: DemoStory,
): Config {
  const given: Settings = config
  const sections = sources.flatMap(({ module: { name, settings }, demo }) => {
    if (settings === undefined) return []
    // A source without a part is left alone: a demo reads no topics of the user's.
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
