/** The section `engines` of a configuration: which engines there are, and the unified tables. */
import Type, { type Static } from 'typebox'
import { shown } from '../../core/settings/config-error.ts'
import { type Fixed, type Given, list, named, oneOf, section } from '../../core/settings/kinds.ts'
import { problemsOfAzure, TablesSchema } from '../../outgoing/azure/keys.ts'
import {
  ENGINE_CONTEXTS,
  NAME_FORM,
  NAME_PATTERN,
  problemWithName,
} from '../../queues/engines/engine-directory.ts'

const EngineSchema = section(
  "An engine of the user's own, or one put in the place of a preset.",
  {
    queue: Type.Optional(
      Type.Union([Type.String({ pattern: /^[^\s~\p{Cc}]{1,500}$/u }), Type.Null()], {
        description: 'The queue that it works on.',
        allowed:
          "1 to 500 characters without white space, control characters and '~', or nothing for an engine without a queue",
        otherwise: 'none: letters are captured and runs recorded over HTTP',
      }),
    ),
    operations: list(
      'What its runs are called.',
      Type.String({ pattern: NAME_PATTERN, allowed: NAME_FORM }),
      { allowed: 'a list of names' },
    ),
  },
  'a mapping with operations and, when it has one, queue',
)

export const EnginesSchema = section('Which engines there are, and where their unified tables lie.', {
  context: Type.Optional(
    oneOf(
      'Presets to begin with; other names than theirs and those of `definitions` are refused.',
      ENGINE_CONTEXTS,
      {
        otherwise: 'every valid name may be an engine',
      },
    ),
  ),
  definitions: named('Engines with their queues and operations, by name.', EngineSchema, {
    default: {},
    allowed: 'a mapping of names to engines',
  }),
  tables: TablesSchema,
})

/** Names of engines are free and of tables different: both are more than one key can tell. */
export function problemsOfEngines(given: Given<Fixed<Static<typeof EnginesSchema>>>): readonly string[] {
  const { definitions = {}, tables = {} } = given
  const problems: string[] = []
  for (const [name, definition] of Object.entries(definitions)) {
    const key = `engines.definitions.${name}`
    const problem = problemWithName(name)
    if (problem !== null) problems.push(`${key}: is not allowed; ${problem}`)
    if (definition?.operations?.length === 0)
      problems.push(`${key}.operations: must name at least one operation`)
  }
  const { dlqTableName = 'engineDlq', historyTableName = 'engineHistory' } = tables
  // SQLite does not tell cases apart.
  if (dlqTableName.toLowerCase() === historyTableName.toLowerCase()) {
    problems.push(
      `engines.tables: dlqTableName and historyTableName must differ, both are ${shown(dlqTableName)}`,
    )
  }
  return [...problems, ...problemsOfAzure(tables, 'engines.tables')]
}
