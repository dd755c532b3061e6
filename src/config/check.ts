/** Compares what one source of configuration gives with the schema and tells all that is wrong with it. */

import { compare } from '../core/settings/compare.ts'
import { shown } from '../core/settings/config-error.ts'
import { isRecord, withoutNothing } from '../core/settings/given.ts'
import { problemWithName } from '../sources/engines/definitions.ts'
import { problemsOfKafka } from '../sources/kafka/settings/rules.ts'
import type { KafkaSection } from '../sources/kafka/settings/schema.ts'
import { problemWithTransport, tableOf } from '../sources/outbox/settings-schema.ts'
import { problemsOfWebhooks } from '../sources/webhooks/settings-schema.ts'
import { problemsOfAliases, withoutAliases } from './aliases.ts'
import { GivenSchema } from './schema.ts'

/** Problems of `given`, each opening with `where` and the key. Sections and keys may be left out. */
export function checkSettings(where: string, given: unknown): string[] {
  const problems: string[] = []
  compare(GivenSchema, given, '', (key, problem) => {
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
    ...problemsOfKafka(kafkaOf(settings)).map((problem) => `${where}: kafka.${problem}`),
  ]
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
  const hasKafka = (kafkaOf(given).servers ?? []).length > 0
  const problems = outboxes.flatMap(({ transport }, index) => {
    const problem = problemWithTransport(withoutNothing(transport), hasKafka)
    return problem === null ? [] : [`${where}: outbox[${index}].transport${problem}`]
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

/** The schema was compared already. */
const kafkaOf = (given: unknown): KafkaSection => withoutNothing(sectionOf(given, 'kafka')) as KafkaSection

const sectionOf = (given: unknown, name: string): Record<string, unknown> => {
  const section = isRecord(given) ? given[name] : undefined
  return isRecord(section) ? section : {}
}

function tokensOf(given: unknown): readonly unknown[] {
  const { tokens } = sectionOf(given, 'auth')
  return Array.isArray(tokens) ? tokens : []
}
