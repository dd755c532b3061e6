/** Every variable of the environment that Bartleby reads. docs/configuration.md lists them. */

interface Variable {
  /** What it is for. Left out: its key says so. */
  readonly description?: string
  /** The key of a configuration that it gives; a flag of the same name wins over it. */
  readonly key?: string
  readonly flag?: string
}

export const ENVIRONMENT = {
  BARTLEBY_CONFIG: { description: 'The configuration file.', flag: '--config' },
  BARTLEBY_HOST: { key: 'host', flag: '--host' },
  BARTLEBY_PORT: { key: 'port', flag: '--port' },
  BARTLEBY_STORE: { key: 'store', flag: '--store' },
  BARTLEBY_UNSUPPORTED_STORE: { key: 'unsupportedStore', flag: '--unsupported-store' },
  BARTLEBY_POSTGRES_LISTEN_URL: { key: 'postgres.listenUrl' },
  BARTLEBY_LOG_LEVEL: { key: 'log.level' },
  BARTLEBY_TEST_API: { key: 'testApi' },
  BARTLEBY_URL: { description: 'The server that commands talk to.', flag: '--url' },
  BARTLEBY_TOKEN: {
    description: 'The token that commands send; unlike a flag, other users of the machine cannot see it.',
    flag: '--token',
  },
  BARTLEBY_OUTBOX_SECRET: { description: 'The secret that `bartleby outbox dispatch` signs messages with.' },
  BARTLEBY_DEBUG: { description: 'With `1`, a command that fails unexpectedly prints where.' },
  AZURE_STORAGE_CONNECTION_STRING: {
    description: 'Connection string of the storage account, where `connectionStringFile` names no file.',
  },
  NO_COLOR: { description: 'Set to anything, commands print without colours.' },
} as const satisfies Readonly<Record<string, Variable>>

export type VariableName = keyof typeof ENVIRONMENT

/** The same with all that an entry may have. */
export const VARIABLES: readonly (Variable & { readonly name: VariableName })[] = Object.entries(
  ENVIRONMENT,
).map(([name, variable]) => ({
  // Entries are named by the table.
  name: name as VariableName,
  ...variable,
}))

/** A variable that is set to nothing is not set: compose files and CI cannot leave one out. */
export const variableOf = (env: NodeJS.ProcessEnv, name: VariableName): string | undefined =>
  env[name] || undefined
