/** The text of docs/configuration.md, from the schemas of the server and of its sources. */
import Type, { type TSchema } from 'typebox'
import { ALIASES } from '../src/config/aliases.ts'
import { ConfigSchema, OWN_KEYS } from '../src/config/schema.ts'
import { VARIABLES } from '../src/core/settings/environment.ts'
import { wordsOf } from '../src/core/settings/read.ts'
import { SOURCES } from '../src/sources/index.ts'

const HEAD = `# Configuration

Generated from the schemas in \`src/\` by \`npm run docs:config\`; do not edit.

YAML (or JSON), given with \`--config FILE\` or \`BARTLEBY_CONFIG\`. Flags win over the environment, the environment over the file, the file over defaults. Unknown keys are errors, and errors name
file, key, value and what is allowed. \`bartleby config check FILE\` says all that is wrong, \`bartleby config show\` what is in force and where it came from.

A key with dots lies in sections: \`log.level\` is \`log: { level: … }\`. \`[]\` stands for each element of a list, \`NAME\` for a name that you choose. *needed*: an element must have it. *Secret* values are never shown. Paths
marked *file* are relative to the configuration file.
`

/** Documentation of all settings as Markdown. */
export function configDoc(): string {
  const { testApi, ...known } = ConfigSchema.properties
  const own = Object.entries(known).filter(([name]) => name in OWN_KEYS)
  const sources = SOURCES.flatMap(({ title, name, settings }) =>
    settings === undefined
      ? []
      : [part(title, wordsOf(settings.schema).description, rowsOf(settings.schema, name, true))],
  )
  return [
    HEAD,
    part(
      'The server',
      undefined,
      own.flatMap(([name, schema]) => rowsOf(schema, name, true)),
    ),
    ...sources,
    secondNames(),
    environment(wordsOf(testApi).description ?? ''),
  ].join('\n')
}

const part = (title: string, sentence: string | undefined, rows: readonly string[]): string =>
  `## ${title}\n\n${sentence === undefined ? '' : `${sentence}\n\n`}| key | allowed | default | |\n|---|---|---|---|\n${rows.join('')}`

/** The rows of a key and of all below it. `isFree`: it may be left out whatever its schema says. */
function rowsOf(schema: TSchema, key: string, isFree: boolean): readonly string[] {
  const inner = Type.IsObject(schema)
    ? Object.entries(schema.properties).flatMap(([name, property]) =>
        rowsOf(property, `${key}.${name}`, isFree && !isElement(key)),
      )
    : elementOf(schema, key)
  return Type.IsObject(schema) ? inner : [rowOf(schema, key, isFree), ...inner]
}

/** The rows of what lies in a list, under names, or in the long form of something. */
function elementOf(schema: TSchema, key: string): readonly string[] {
  if (Type.IsArray(schema)) return membersOf(schema.items, `${key}[]`)
  if (Type.IsRecord(schema)) return membersOf(Type.RecordValue(schema), `${key}.NAME`)
  return Type.IsUnion(schema)
    ? schema.anyOf.filter(Type.IsObject).flatMap((variant) => membersOf(variant, key))
    : []
}

/** Elements have rows where they are mappings. */
const membersOf = (element: TSchema, key: string): readonly string[] =>
  Type.IsUnion(element)
    ? elementOf(element, key)
    : Type.IsObject(element)
      ? Object.entries(element.properties).flatMap(([name, property]) =>
          rowsOf(property, `${key}.${name}`, false),
        )
      : []

const isElement = (key: string): boolean => /\[\]|\.NAME/.test(key)

function rowOf(schema: TSchema, key: string, isFree: boolean): string {
  const { description = '', allowed = '', secret, file, ...words } = wordsOf(schema)
  const value = 'default' in words ? `\`${textOf(words.default)}\`` : words.otherwise
  const isNeeded = !isFree && !Type.IsOptional(schema) && value === undefined
  const marks = [...(secret === true ? ['*Secret.*'] : []), ...(file === true ? ['*File.*'] : [])]
  const variable = VARIABLES.find((one) => one.key === key)
  const ways =
    variable === undefined
      ? []
      : [variable.flag, variable.name].flatMap((way) => (way === undefined ? [] : [`\`${way}\``]))
  const told = [description, ...marks, ...(ways.length === 0 ? [] : [`Also ${ways.join(', ')}.`])].join(' ')
  return row(`\`${key}\``, allowedText(schema, allowed), isNeeded ? '*needed*' : (value ?? 'none'), told)
}

/** Of a list of values also what each may be. */
function allowedText(schema: TSchema, allowed: string): string {
  const each =
    Type.IsArray(schema) && !Type.IsObject(schema.items) ? wordsOf(schema.items).allowed : undefined
  return each === undefined ? allowed : `${allowed}; each ${each}`
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`

const secondNames = (): string =>
  `## Second names

A file may give these under another name. Giving both is allowed if they agree.

| name | means |
|---|---|
${[...new Set(ALIASES.map(secondName))].join('')}`

/** Of a section with two names only these are told, not those of its keys. */
function secondName([alias, name]: (typeof ALIASES)[number]): string {
  const isKey = name.length > 1 && alias.at(-1) === name.at(-1)
  const shown = (path: readonly string[]): string => `\`${(isKey ? path.slice(0, -1) : path).join('.')}\``
  return row(shown(alias), shown(name))
}

const environment = (testApi: string): string =>
  `## Environment

A variable that is set to nothing is not set. Numbers are digits; yes and no are \`1\` and \`0\`. A flag wins over its variable.

| variable | flag | gives | |
|---|---|---|---|
${VARIABLES.map(({ name, flag, key, description }) =>
  row(
    `\`${name}\``,
    flag === undefined ? '' : `\`${flag}\``,
    key === undefined || key === 'testApi' ? '' : `\`${key}\``,
    description ?? (key === 'testApi' ? testApi : ''),
  ),
).join('')}`
