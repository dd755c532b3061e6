/** `bartleby config`: whether a configuration is good, and what is in force. */
import type { SettingInForce } from '../config/in-force.ts'
import { ConfigError } from '../core/settings/config-error.ts'
import { sourceCommand, UNSUPPORTED_STORE } from '../sources/source-commands.ts'
import { commandGroup } from '../terminal/command.ts'
import { failed, nothing } from '../terminal/exit.ts'
import { type Column, columnsText } from '../terminal/table.ts'
import { styleOf } from '../terminal/terminal.ts'

const check = sourceCommand(
  'check [file]',
  'Say everything that is wrong with a configuration file, or that it is good. Nothing is started.',
)
  .option('--config <file>', 'the same as the argument')
  .option('--json', 'print {"file": …, "problems": […]}')
  .help(`The environment is looked at too, as a server would. Files that the configuration names must be there. Ends with 1 when
something is wrong. Without a file (argument, --config or BARTLEBY_CONFIG) the environment alone is checked.

Examples:
  $ bartleby config check bartleby.yaml
  $ bartleby config check bartleby.yaml --json | jq -r '.problems[]'`)
  .work(async ({ terminal: { env, out } }, argument, { config: named, json = false }) => {
    const { checkConfig, configFileOf } = await import('../config/index.ts')
    const sources = { env, flags: { config: argument ?? named } }
    const file = configFileOf(sources) ?? null
    const problems = checkConfig(sources)
    if (json) out(JSON.stringify({ file, problems }))
    else if (problems.length === 0) out(`${file ?? 'the configuration without a file'} is good`)
    if (problems.length === 0) return
    throw failed(json ? 'the configuration is not good' : new ConfigError(problems).message)
  })

const show = sourceCommand(
  'show [key]',
  'Show what is in force and where each value came from: default, file, environment or flag.',
)
  .option('--host <address>', 'as for serve')
  .option('--port <number>', 'as for serve')
  .option('--store <url>', 'as for serve')
  .option('--unsupported-store', UNSUPPORTED_STORE)
  .option('--config <file>', 'configuration in YAML')
  .option('--given', 'leave out defaults')
  .option('--json', 'print [{"key", "value", "otherwise", "from", "name"}, …]')
  .help(`Secrets and passwords are masked. A key shows its own section only. docs/configuration.md says what each key does.

Examples:
  $ bartleby config show --config bartleby.yaml
  $ bartleby config show webhooks.delivery
  $ bartleby config show --given --json`)
  .work(async ({ terminal }, key, { given: onlyGiven = false, json = false, ...flags }) => {
    const { loadWithLayers } = await import('../config/index.ts')
    const { settingsInForce } = await import('../config/in-force.ts')
    const { config, layers } = loadWithLayers({ env: terminal.env, flags })
    const all = settingsInForce(config, layers)
    const within =
      key === undefined ? all : all.filter((row) => row.key === key || row.key.startsWith(`${key}.`))
    if (within.length === 0) throw nothing(`there is no key '${key}'; 'bartleby config show' lists all`)
    const rows = onlyGiven ? within.filter(({ from }) => from !== 'default') : within
    if (json) return terminal.out(JSON.stringify(rows, null, 2))
    if (rows.length === 0) return terminal.out('nothing is given: all of it is the default')
    terminal.out(columnsText(COLUMNS, rows, terminal.screen?.columns, styleOf(terminal)))
  })

const COLUMNS: readonly Column<SettingInForce>[] = [
  { heading: 'KEY', text: ({ key }) => key },
  {
    heading: 'VALUE',
    text: ({ value, otherwise }) =>
      otherwise === null ? valueText(value) : `(${otherwise.replaceAll('`', '')})`,
    flexible: true,
    paint: ({ from }, text, style) => (from === 'default' ? style.dim(text) : text),
  },
  { heading: 'FROM', text: ({ from, name }) => (name === null ? from : `${from} ${name}`) },
]

const valueText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

export const configCommand = commandGroup(
  'config',
  'Check a configuration, and show what is in force.',
  `Examples:
  $ bartleby config check bartleby.yaml
  $ bartleby config show --config bartleby.yaml`,
  [check, show],
)
