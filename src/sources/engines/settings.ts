/** The section `engines` of a configuration: which engines there are, and the unified tables. */
import type { Static } from 'typebox'
import { shown } from '../../core/settings/config-error.ts'
import { type Fixed, type Given, section } from '../../core/settings/kinds.ts'
import { withDefaults } from '../../core/settings/read.ts'
import { problemsOfAzure, TablesSchema } from '../../outgoing/azure/keys.ts'
import { DirectorySchema, problemsOfDefinitions } from '../../queues/engines/settings.ts'

export const EnginesSchema = section('Which engines there are, and where their unified tables lie.', {
  ...DirectorySchema.properties,
  tables: TablesSchema,
})

/** SQLite does not tell cases apart. */
export function problemsOfEngines(given: Given<Fixed<Static<typeof EnginesSchema>>>): readonly string[] {
  const { tables = {} } = given
  const { dlqTableName, historyTableName } = withDefaults(TablesSchema, tables)
  const isSame = dlqTableName.toLowerCase() === historyTableName.toLowerCase()
  return [
    ...problemsOfDefinitions(given),
    ...(isSame
      ? [`engines.tables: dlqTableName and historyTableName must differ, both are ${shown(dlqTableName)}`]
      : []),
    ...problemsOfAzure(tables, 'engines.tables'),
  ]
}
