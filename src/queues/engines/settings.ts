/** Keys of the section `engines` that say which engines there are; their presets are in engine-directory.ts. */
import Type, { type Static } from 'typebox'
import { type Fixed, type Given, list, named, oneOf, section } from '../../core/settings/kinds.ts'
import { sourceNames } from '../../letters/kinds.ts'
import { OFFICE } from '../../letters/letter.ts'

export const ENGINE_CONTEXTS = ['publisher', 'managed-app'] as const
export type EngineContext = (typeof ENGINE_CONTEXTS)[number]

/** Names of engines and operations. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9-]{0,63}$/
export const NAME_FORM = "1 to 64 of 'a'-'z', '0'-'9' and '-', the first one not '-'"

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

export const DirectorySchema = section('Which engines there are.', {
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
})

/** Without a context, engines are open. */
export type EngineSettings = Given<Fixed<Static<typeof DirectorySchema>>>

/** Names of engines are free, so that the schema cannot check them. */
export const problemsOfDefinitions = ({ definitions = {} }: EngineSettings): readonly string[] =>
  Object.entries(definitions).flatMap(([name, { operations }]) => {
    const key = `engines.definitions.${name}`
    const problem = problemWithName(name)
    return [
      ...(problem === null ? [] : [`${key}: is not allowed; ${problem}`]),
      ...(operations.length > 0 ? [] : [`${key}.operations: must name at least one operation`]),
    ]
  })

/** Every source's name is taken: a letter of engine 'kafka' must be one that Kafka gave. */
export const reservedNames = (): readonly string[] => [...sourceNames(), OFFICE]

export function problemWithName(name: string): string | null {
  if (!NAME_PATTERN.test(name)) return `an engine's name is ${NAME_FORM}`
  return reservedNames().includes(name) ? `'${name}' is one of Bartleby's own names` : null
}
