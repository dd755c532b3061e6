/** Compares what one source of configuration gives with the schema and tells all that is wrong with it. */
import Type, { type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { problemWithName } from '../engines/definitions.ts'
import { isRecord, problemsOfAliases, withoutAliases } from './aliases.ts'
import { shown, unknownKey } from './config-error.ts'
import { problemWithTransport, tableOf } from './outbox-schema.ts'
import { GivenSchema } from './schema.ts'
import { problemsOfWebhooks } from './webhooks-schema.ts'

/** Problems of `given`, each opening with `where` and the key. Sections and keys may be left out. */
export function checkSettings(where: string, given: unknown): string[] {
  const problems: string[] = []
  check(GivenSchema, given, '', (key, problem) => {
    problems.push(key === '' ? `${where}: ${problem}` : `${where}: ${key}: ${problem}`)
  })
  if (problems.length > 0 || !isRecord(given)) return problems
  const settings = withoutAliases(given)
  return [
    ...problemsOfAliases(given).map((problem) => `${where}: ${problem}`),
    ...checkDistinct(where, tokensOf(settings)),
    ...checkEngines(where, settings),
    ...checkOutboxes(where, settings),
    ...problemsOfWebhooks(sectionOf(settings, 'webhooks')).map((problem) => `${where}: webhooks.${problem}`),
  ]
}

type Report = (key: string, problem: string) => void

function check(schema: TSchema, value: unknown, key: string, report: Report): void {
  if (Type.IsObject(schema) && isRecord(value)) {
    checkKeys(schema.properties, value, key, report)
  } else if (Type.IsArray(schema) && Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      checkElement(schema.items, element, `${key}[${index}]`, report)
    }
  } else if (Type.IsRecord(schema) && isRecord(value)) {
    for (const [name, element] of Object.entries(value)) {
      checkElement(Type.RecordValue(schema), element, `${key}.${name}`, report)
    }
  } else if (Type.IsUnion(schema) && isRecord(value) && schema.anyOf.some(Type.IsObject)) {
    // A short form beside a mapping: what is wrong inside the mapping is told by its key.
    for (const variant of schema.anyOf.filter(Type.IsObject)) checkElement(variant, value, key, report)
  } else if (Type.IsObject(schema) || Type.IsArray(schema) || Type.IsRecord(schema)) {
    report(key, `must be ${allowed(schema)}, not ${kindOf(value)}`)
  } else if (!Value.Check(schema, value)) {
    const given = isSecret(schema) ? 'the value (not shown)' : shown(value)
    report(key, `${given} is not allowed; allowed: ${allowed(schema)}`)
  }
}

/** Null is "not given": what YAML makes of a section whose lines are all commented out. */
function checkKeys(
  known: Type.TProperties,
  value: Record<string, unknown>,
  key: string,
  report: Report,
): void {
  for (const [name, inner] of Object.entries(value)) {
    const innerKey = key === '' ? name : `${key}.${name}`
    const schema = Object.hasOwn(known, name) ? known[name] : undefined
    if (schema === undefined) report(innerKey, unknownKey(name, Object.keys(known)))
    else if (inner !== null) check(schema, inner, innerKey, report)
  }
}

/** Elements of a list or of a mapping are whole: only what is optional in them may be left out. */
function checkElement(schema: TSchema, value: unknown, key: string, report: Report): void {
  check(schema, value, key, report)
  if (!Type.IsObject(schema) || !isRecord(value)) return
  for (const [name, inner] of Object.entries(schema.properties)) {
    if (Type.IsOptional(inner)) continue
    if ((value[name] ?? null) === null) report(`${key}.${name}`, `is missing; allowed: ${allowed(inner)}`)
  }
}

/** Two tokens of one name, or one token under two names, would make revoking one a guess. */
function checkDistinct(where: string, tokens: readonly unknown[]): string[] {
  const problems: string[] = []
  for (const property of ['name', 'sha256'] as const) {
    const first = new Map<unknown, number>()
    for (const [index, token] of tokens.entries()) {
      const value = isRecord(token) ? token[property] : undefined
      const earlier = first.get(value)
      if (earlier === undefined) first.set(value, index)
      else
        problems.push(
          `${where}: auth.tokens[${index}].${property}: is the same as that of auth.tokens[${earlier}]`,
        )
    }
  }
  return problems
}

/** Names of engines are free and of tables different: both are more than one key can tell. */
function checkEngines(where: string, given: unknown): string[] {
  const engines = sectionOf(given, 'engines')
  const problems: string[] = []
  for (const [name, definition] of Object.entries(sectionOf(engines, 'definitions'))) {
    const key = `${where}: engines.definitions.${name}`
    const problem = problemWithName(name)
    if (problem !== null) problems.push(`${key}: is not allowed; ${problem}`)
    const operations = isRecord(definition) ? definition.operations : undefined
    if (Array.isArray(operations) && operations.length === 0) {
      problems.push(`${key}.operations: must name at least one operation`)
    }
  }
  const tables = sectionOf(engines, 'tables')
  const dlqTableName = String(tables.dlqTableName ?? 'engineDlq')
  const historyTableName = String(tables.historyTableName ?? 'engineHistory')
  // SQLite does not tell cases apart.
  if (dlqTableName.toLowerCase() === historyTableName.toLowerCase()) {
    problems.push(
      `${where}: engines.tables: dlqTableName and historyTableName must differ, both are ${shown(dlqTableName)}`,
    )
  }
  return problems
}

/** Letters are known by the name of their outbox; and what a transport needs depends on its type. */
function checkOutboxes(where: string, given: unknown): string[] {
  const outboxes = isRecord(given) && Array.isArray(given.outbox) ? given.outbox.filter(isRecord) : []
  const names = outboxes.map(({ name }) => String(name))
  const problems = outboxes.flatMap(({ transport }, index) => {
    const problem = isRecord(transport) ? problemWithTransport(transport) : null
    return problem === null ? [] : [`${where}: outbox[${index}].transport.${problem}`]
  })
  for (const [index, name] of names.entries()) {
    const first = names.indexOf(name)
    if (first < index)
      problems.push(`${where}: outbox[${index}].name: is the same as that of outbox[${first}]`)
  }
  const store = isRecord(given) ? given.store : undefined
  return [...problems, ...checkTables(where, outboxes, store)]
}

/** Two outboxes on one table would share out its messages between their transports, and make two letters of one. */
function checkTables(
  where: string,
  outboxes: readonly Record<string, unknown>[],
  store: unknown,
): readonly string[] {
  const owners = new Map<string, number>()
  return outboxes.flatMap((outbox, index) => {
    const table = tableOf(outbox)
    if (table === null) return []
    if ('problem' in table) return [`${where}: outbox[${index}].${table.problem}`]
    const place = JSON.stringify([outbox.url ?? store ?? null, table.name])
    const first = owners.get(place) ?? index
    owners.set(place, first)
    return first < index ? [`${where}: outbox[${index}].table: is the same as that of outbox[${first}]`] : []
  })
}

const sectionOf = (given: unknown, name: string): Record<string, unknown> => {
  const section = isRecord(given) ? given[name] : undefined
  return isRecord(section) ? section : {}
}

function tokensOf(given: unknown): readonly unknown[] {
  const { tokens } = sectionOf(given, 'auth')
  return Array.isArray(tokens) ? tokens : []
}

const allowed = (schema: TSchema): string =>
  'description' in schema ? String(schema.description) : 'see the documentation'

const isSecret = (schema: TSchema): boolean => 'secret' in schema && schema.secret === true

/** What something is, without its value: it may be a secret in the wrong place. */
const kindOf = (value: unknown): string => {
  if (value === null || value === undefined) return 'empty'
  return typeof value === 'object' ? shown(value) : `a ${typeof value}`
}
