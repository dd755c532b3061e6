/** `bartleby kafka check`: tries the section `kafka` of a configuration, and says what is missing and which right to grant. */
import { Command } from 'commander'
import type { ConfigFlags } from '../../config/index.ts'
import type { KafkaCheck } from '../../kafka/check.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import { printable, type Terminal } from '../terminal.ts'

interface Flags extends ConfigFlags {
  readonly json?: boolean
}

export function checkCommand(terminal: Terminal): Command {
  return new Command('check')
    .description(
      'Try brokers, topics, group and rights of the configuration. Writes no record, joins no group.',
    )
    .option('--config <file>', 'configuration in YAML')
    .option('--json', 'print the checks as JSON')
    .addHelpText(
      'after',
      `
It works beside a running server, and also while \`kafka.enabled\` is false. Rights that are needed:
  Read, Describe    on the DLQ topics
  Read              on the group
  Write, Describe   on the retry topics

Examples:
  $ bartleby kafka check
  $ bartleby kafka check --config bartleby.yaml --json | jq '.[] | select(.verdict == "missing")'

Exit codes:
  0  nothing is missing
  1  something is missing; the lines say what
  2  wrong usage or configuration`,
    )
    .action(({ json, ...flags }: Flags) => check(flags, json === true, terminal))
}

async function check(flags: ConfigFlags, json: boolean, terminal: Terminal): Promise<void> {
  // Loaded when they are needed, as in `serve`.
  const { loadConfig } = await import('../../config/index.ts')
  const { kafkaSettings } = await import('../../kafka/options.ts')
  const { checkKafka } = await import('../../kafka/check.ts')
  const { kafka } = loadConfig({ env: terminal.env, flags })
  const settings = kafkaSettings({ ...kafka, enabled: true })
  if (settings === null) throw new CommandFailure(EXIT.usage, 'the configuration has no section kafka')
  const checks = await checkKafka(settings)
  terminal.out(json ? JSON.stringify(checks, null, 2) : checks.map(lineOf).join('\n'))
  const missing = checks.filter(({ verdict }) => verdict === 'missing').length
  if (missing > 0)
    throw new CommandFailure(
      EXIT.failed,
      missing === 1 ? '1 thing is missing' : `${missing} things are missing`,
    )
}

const MARKS = { fine: '✓', missing: '✗', unknown: '?' } as const

const lineOf = ({ subject, verdict, message }: KafkaCheck): string =>
  `${MARKS[verdict]} ${printable(subject)} ${printable(message)}`
