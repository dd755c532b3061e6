/**
 * The keys of the unified tables, `engines.tables`. Engines own the section, the source `azure` reads the account: what both know lies
 * here.
 */
import Type, { type Static } from 'typebox'
import { isRecord } from '../../core/settings/given.ts'
import {
  type Fixed,
  file,
  type Given,
  list,
  oneOf,
  section,
  text,
  wholeNumber,
  yesOrNo,
} from '../../core/settings/kinds.ts'
import { withDefaults } from '../../core/settings/read.ts'

/** The section of a configuration whose `tables` these are. */
export const TABLES_SECTION = 'engines'

const endpoint = (description: string) =>
  Type.Optional(
    text(description, {
      pattern: /^https?:\/\/[^\s?#]+$/,
      allowed: 'a URL that begins with https://, or http:// for an emulator',
      otherwise: "the public cloud's",
    }),
  )

/** `as-found`: as the message was in the table or in the poison queue. */
export const ENCODINGS = ['as-found', 'base64', 'plain'] as const

const tableName = (description: string, byDefault: string) =>
  text(description, {
    pattern: /^[A-Za-z][A-Za-z0-9]{2,62}$/,
    allowed: '3 to 63 letters or digits, the first one a letter',
    default: byDefault,
  })

/** As the registry entry has them that the unified tables are configured by, and what an account needs besides. */
export const TablesSchema = section('The unified tables, in the store or in an Azure storage account.', {
  dlqTableName: tableName('Name of the SQL view of letters, or of the table in Azure.', 'engineDlq'),
  historyTableName: tableName('Name of the SQL view of history, or of the table in Azure.', 'engineHistory'),
  retentionDays: wholeNumber('Days that resolved and expired letters and history are kept.', {
    from: 1,
    to: 3_650,
    default: 90,
  }),
  storageAccountName: Type.Optional(
    text('Storage account that the tables are in.', {
      pattern: /^[a-z0-9]{3,24}$/,
      allowed: "3 to 24 of 'a'-'z' and '0'-'9'",
      otherwise: "the office's own store has them",
    }),
  ),
  endpoint: endpoint('Address of the table service, for sovereign clouds and emulators.'),
  connectionStringFile: Type.Optional(
    file('File with the connection string of the account.', {
      allowed: 'the path of a file with a connection string',
      otherwise:
        '`AZURE_STORAGE_CONNECTION_STRING`, else the identity of the process (`DefaultAzureCredential`)',
    }),
  ),
  queues: section('The Storage Queues of the account.', {
    endpoint: endpoint('Address of the queue service.'),
    encoding: oneOf(
      'How messages leave: as they were found, or always in base64 (which the Functions host expects) or plain.',
      ENCODINGS,
      { default: 'as-found' },
    ),
  }),
  engines: Type.Optional(
    list(
      'Engines whose partitions are taken in.',
      Type.String({ minLength: 1, maxLength: 512, allowed: 'the name of an engine' }),
      { allowed: 'a list of engines; left out: all of them', otherwise: 'all of them' },
    ),
  ),
  poison: list(
    'Queues whose messages are taken in too.',
    Type.String({
      // As Azure lets queues be called.
      pattern: /^(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/,
      allowed: "3 to 63 of 'a'-'z', '0'-'9' and single '-'",
    }),
    { default: [], allowed: 'a list of queues, such as orders-poison' },
  ),
  mark: yesOrNo(
    'Whether JSON objects that go back have a member `_bartleby`, so that a second death finds its letter for certain.',
    { default: false },
  ),
  retention: oneOf('Who removes rows whose time is over.', ['others', 'bartleby'], { default: 'others' }),
  pollSeconds: wholeNumber('Pause between two readings.', { from: 1, to: 3_600, default: 2 }),
})

export type TableKeys = Fixed<Static<typeof TablesSchema>>

/** Tables in an account, with all defaults. */
export interface AzureTables extends TableKeys {
  readonly storageAccountName: string
}

/** What is configured of tables in an account; null where they are in the office's own store. */
export function azureTablesOf(given: unknown): AzureTables | null {
  if (!isRecord(given) || typeof given.storageAccountName !== 'string') return null
  return { ...withDefaults(TablesSchema, given), storageAccountName: given.storageAccountName }
}

/** Keys that mean nothing without an account; each is named with the section that it is in. */
export function problemsOfAzure(given: Given<TableKeys>, place: string): readonly string[] {
  if (given.storageAccountName !== undefined) return []
  const lost = ['endpoint', 'connectionStringFile', 'engines', 'retention', 'mark', 'poison'] as const
  return lost
    .filter((key) => given[key] !== undefined)
    .map((key) => `${place}.${key}: needs ${place}.storageAccountName`)
}
