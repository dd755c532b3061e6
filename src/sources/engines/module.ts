/** Engines: named workers, whose letters and history are the unified tables. */
import type { Given } from '../../core/settings/kinds.ts'
import { azureTablesOf, type TableKeys } from '../../outgoing/azure/keys.ts'
import type { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import type { EngineSettings } from '../../queues/engines/settings.ts'
import type { SourceModule } from '../source-module.ts'
import type { Engine } from './engine.ts'
import type { EngineMessage, EngineOptions } from './options.ts'
import { EnginesSchema, problemsOfEngines } from './settings.ts'
import type { EngineStatistics } from './statistics.ts'

/** Without a context every name may be an engine. */
export type EnginesOptions = EngineSettings & {
  readonly tables?: Given<TableKeys>
}

export interface EnginesFace {
  readonly engines: EngineDirectory
  readonly engineStatistics: EngineStatistics
  /** A worker on an engine's queue; start it to begin. The office stops it when it is drained. */
  engine<Message = EngineMessage>(options: EngineOptions<Message>): Engine
}

export const enginesModule: SourceModule<'engines', typeof EnginesSchema, EnginesOptions, EnginesFace> = {
  name: 'engines',
  title: 'Engines',
  settings: {
    schema: EnginesSchema,
    aliases: { engineTablesConfig: 'tables' },
    problems: problemsOfEngines,
  },
  kind: { goesToQueues: true, ordersByKey: true, hasEngines: true, capturesItems: true },
  offers: (options) => ({ tables: azureTablesOf(options?.tables) }),
  open: async (parts, options) => (await import('./open.ts')).openEngines(parts, options),
  demo: async () => (await import('./demo.ts')).enginesDemo,
}
