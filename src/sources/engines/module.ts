/** Engines: named workers whose dead messages and operations are the unified tables. */
import type { Given } from '../../core/settings/kinds.ts'
import { azureTablesOf, type TableKeys } from '../../outgoing/azure/keys.ts'
import type { EngineDirectory, EngineSettings } from '../../queues/engines/engine-directory.ts'
import type { SourceModule } from '../source-module.ts'
import type { Engine } from './engine.ts'
import type { EngineMessage, EngineOptions } from './options.ts'
import { EnginesSchema, problemsOfEngines } from './settings.ts'
import type { EngineStatistics } from './statistics.ts'

/** Which engines there are, and how long their letters and history are kept. Without a context every name may be one. */
export type EnginesOptions = EngineSettings & {
  /** With a storage account they lie there: docs/azure.md. */
  readonly tables?: Given<TableKeys>
}

export interface EnginesFace {
  /** The engines that there are. */
  readonly engines: EngineDirectory
  /** How they did lately. */
  readonly engineStatistics: EngineStatistics
  /**
   * A worker on the queue of an engine; start it to begin. The office stops it when it is drained, unless that
   * was done before.
   */
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
