/** Engines: named workers whose dead messages and operations are the unified tables. */
import type { SourceModule } from '../source-module.ts'
import { EnginesSchema, problemsOfEngines } from './settings.ts'

export const enginesModule: SourceModule<'engines', typeof EnginesSchema> = {
  name: 'engines',
  title: 'Engines',
  settings: {
    schema: EnginesSchema,
    aliases: { engineTablesConfig: 'tables' },
    problems: problemsOfEngines,
  },
}
