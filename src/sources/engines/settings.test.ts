import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../config/load.ts'
import { ConfigError } from '../../core/settings/config-error.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-config-'))
  file = join(folder, 'bartleby.yaml')
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

/** What tables have that are in no account. */
const NO_ACCOUNT = {
  ...{ mark: false, poison: [], pollSeconds: 2, queues: { encoding: 'as-found' }, retention: 'others' },
}

const enginesOf = (text: string) => {
  writeFileSync(file, text)
  return loadConfig({ file, env: {} }).engines
}

const problemsOf = (text: string): string[] => {
  try {
    enginesOf(text)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.replace(`${file}: `, ''))
    throw error
  }
  return []
}

describe('the engines section', () => {
  it('adds engines with and without a queue', () => {
    const engines = enginesOf(`
engines:
  context: managed-app
  definitions:
    billing: { queue: billing-queue, operations: [charge, refund] }
    audit: { operations: [write] }
    alerts: { queue: null, operations: [process] }
  tables: { dlqTableName: deadOnes, historyTableName: past, retentionDays: 7 }
`)
    expect(engines).toEqual({
      context: 'managed-app',
      definitions: {
        billing: { queue: 'billing-queue', operations: ['charge', 'refund'] },
        audit: { operations: ['write'] },
        alerts: { operations: ['process'] },
      },
      tables: { ...NO_ACCOUNT, dlqTableName: 'deadOnes', historyTableName: 'past', retentionDays: 7 },
    })
  })

  it('has no context unless one is given, and its tables under their name in the registry too', () => {
    const engines = enginesOf('engineTablesConfig: { dlqTableName: deadOnes, retentionDays: 7 }')
    expect(engines).toEqual({
      definitions: {},
      tables: {
        ...NO_ACCOUNT,
        dlqTableName: 'deadOnes',
        historyTableName: 'engineHistory',
        retentionDays: 7,
      },
    })
    const both = `
engines: { context: publisher, tables: { historyTableName: past, retentionDays: 7 } }
engineTablesConfig: { dlqTableName: deadOnes, retentionDays: 7 }
`
    expect(enginesOf(both)).toMatchObject({
      context: 'publisher',
      tables: { ...NO_ACCOUNT, dlqTableName: 'deadOnes', historyTableName: 'past', retentionDays: 7 },
    })
  })

  it.each([
    [
      '{ engines: { tables: { retentionDays: 7 } }, engineTablesConfig: { retentionDays: 8 } }',
      'engineTablesConfig.retentionDays: is 8, but engines.tables.retentionDays is 7; give one of them',
    ],
    [
      'engineTablesConfig: { storageAccountName: A }',
      "engineTablesConfig.storageAccountName: 'A' is not allowed; allowed: 3 to 24 of 'a'-'z' and '0'-'9'",
    ],
    [
      'engineTablesConfig: { dlqTableName: EngineHistory }',
      "engines.tables: dlqTableName and historyTableName must differ, both are 'EngineHistory'",
    ],
    ['engineTablesConfig: { days: 7 }', expect.stringMatching(/^engineTablesConfig.days: unknown key/)],
    [
      'engines: { context: other }',
      "engines.context: 'other' is not allowed; allowed: one of 'publisher', 'managed-app'",
    ],
    [
      'engines: { definitions: [] }',
      'engines.definitions: must be a mapping of names to engines, not a list',
    ],
    [
      'engines: { definitions: { billing: } }',
      'engines.definitions.billing: must be a mapping with operations and, when it has one, queue, not empty',
    ],
    [
      'engines: { definitions: { billing: { queue: q } } }',
      'engines.definitions.billing.operations: is missing; allowed: a list of names',
    ],
    [
      'engines: { definitions: { billing: { operations: [] } } }',
      'engines.definitions.billing.operations: must name at least one operation',
    ],
    [
      'engines: { definitions: { billing: { operations: [Charge] } } }',
      "engines.definitions.billing.operations[0]: 'Charge' is not allowed; allowed: 1 to 64 of 'a'-'z', '0'-'9' and '-', the first one not '-'",
    ],
    [
      "engines: { definitions: { billing: { queue: 'a b', operations: [x] } } }",
      "engines.definitions.billing.queue: 'a b' is not allowed; allowed: 1 to 500 characters without white space, control characters and '~', or nothing for an engine without a queue",
    ],
    [
      'engines: { definitions: { billing: { ops: [x], operations: [x] } } }',
      'engines.definitions.billing.ops: unknown key; known keys here: queue, operations',
    ],
    [
      'engines: { definitions: { Billing: { operations: [x] } } }',
      "engines.definitions.Billing: is not allowed; an engine's name is 1 to 64 of 'a'-'z', '0'-'9' and '-', the first one not '-'",
    ],
    [
      'engines: { definitions: { kafka: { operations: [x] } } }',
      "engines.definitions.kafka: is not allowed; 'kafka' is one of Bartleby's own names",
    ],
    [
      'engines: { tables: { retention: bartleby } }',
      'engines.tables.retention: needs engines.tables.storageAccountName',
    ],
    [
      'engines: { tables: { storageAccountName: acct, poison: [Orders] } }',
      "engines.tables.poison[0]: 'Orders' is not allowed; allowed: 3 to 63 of 'a'-'z', '0'-'9' and single '-'",
    ],
    [
      'engines: { tables: { storageAccountName: acct, endpoint: acct.table.core } }',
      "engines.tables.endpoint: 'acct.table.core' is not allowed; allowed: a URL that begins with https://, or http:// for an emulator",
    ],
    [
      'engines: { tables: { dlqTableName: 1a } }',
      "engines.tables.dlqTableName: '1a' is not allowed; allowed: 3 to 63 letters or digits, the first one a letter",
    ],
    [
      'engines: { tables: { dlqTableName: EngineHistory } }',
      "engines.tables: dlqTableName and historyTableName must differ, both are 'EngineHistory'",
    ],
    [
      'engines: { tables: { retentionDays: 0 } }',
      'engines.tables.retentionDays: 0 is not allowed; allowed: a whole number from 1 to 3650',
    ],
  ])('refuses %s', (text, problem) => {
    expect(problemsOf(text)).toEqual([problem])
  })
})
