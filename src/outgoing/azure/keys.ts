/**
 * The keys of the unified tables that only tables in Azure have. Engines own the section, the source `azure` reads the account: what
 * both know lies here. Each `description` completes the sentence "allowed: …" in an error.
 */
import Type, { type Static } from 'typebox'
import { Value } from 'typebox/value'
import { isRecord, withDefaults } from '../../core/settings/given.ts'
import { type Fixed, type Given, oneOf, section, wholeNumber, yesOrNo } from '../../core/settings/kinds.ts'

/** The section of a configuration whose `tables` these are. */
export const TABLES_SECTION = 'engines'

const URL_FORM = 'a URL that begins with https://, or http:// for an emulator'

const endpoint = () => Type.Optional(Type.String({ pattern: /^https?:\/\/[^\s?#]+$/, description: URL_FORM }))

/** As Azure lets queues be called. */
const QUEUE_NAME = /^(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/
const queueName = () =>
  Type.String({ pattern: QUEUE_NAME, description: "3 to 63 of 'a'-'z', '0'-'9' and single '-'" })

/** `as-found`: as the message was in the table or in the poison queue. */
export const ENCODINGS = ['as-found', 'base64', 'plain'] as const

const tableName = (byDefault: string) =>
  Type.String({
    pattern: /^[A-Za-z][A-Za-z0-9]{2,62}$/,
    default: byDefault,
    description: '3 to 63 letters or digits, the first one a letter',
  })

/** As the registry entry has them that the unified tables are configured by, and what an account needs besides. */
export const TablesSchema = section({
  dlqTableName: tableName('engineDlq'),
  historyTableName: tableName('engineHistory'),
  retentionDays: wholeNumber(1, 3_650, 90),
  storageAccountName: Type.Optional(
    Type.String({ pattern: /^[a-z0-9]{3,24}$/, description: "3 to 24 of 'a'-'z' and '0'-'9'" }),
  ),
  endpoint: endpoint(),
  connectionStringFile: Type.Optional(
    Type.String({ minLength: 1, description: 'the path of a file with a connection string' }),
  ),
  queues: section({ endpoint: endpoint(), encoding: oneOf(ENCODINGS, 'as-found') }),
  engines: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 512, description: 'the name of an engine' }), {
      description: 'a list of engines; left out: all of them',
    }),
  ),
  poison: Type.Array(queueName(), { default: [], description: 'a list of queues, such as orders-poison' }),
  mark: yesOrNo(false),
  retention: oneOf(['others', 'bartleby'], 'others'),
  pollSeconds: wholeNumber(1, 3_600, 2),
})

export type TableKeys = Fixed<Static<typeof TablesSchema>>

/** Tables in an account, with all defaults. */
export interface AzureTables extends TableKeys {
  readonly storageAccountName: string
}

/** What is configured of tables in an account; null where they are in the office's own store. */
export function azureTablesOf(given: unknown): AzureTables | null {
  if (!isRecord(given) || typeof given.storageAccountName !== 'string') return null
  const tables = withDefaults<TableKeys>(Value.Create(TablesSchema), given)
  return { ...tables, storageAccountName: given.storageAccountName }
}

/** Keys that mean nothing without an account; each is named with the section that it is in. */
export function problemsOfAzure(given: Given<TableKeys>, place: string): readonly string[] {
  if (given.storageAccountName !== undefined) return []
  const lost = ['endpoint', 'connectionStringFile', 'engines', 'retention', 'mark', 'poison'] as const
  return lost
    .filter((key) => given[key] !== undefined)
    .map((key) => `${place}.${key}: needs ${place}.storageAccountName`)
}
