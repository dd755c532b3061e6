/** `bartleby kafka …`: what is done about Kafka from a terminal. */
import { Command } from 'commander'
import { EXIT_HELP } from '../exit.ts'
import { DEFAULT_URL } from '../queues/connection.ts'
import type { Terminal } from '../terminal.ts'
import { checkCommand } from './check.ts'
import { officeCommands } from './office.ts'

export function kafkaCommand(terminal: Terminal): Command {
  const kafka = new Command('kafka')
    .description('Look after Kafka: brokers, topics and rights, intake, dead events.')
    .addHelpText(
      'after',
      `
\`check\` reads the configuration and asks the brokers itself. The others ask a server: --url, BARTLEBY_URL or ${DEFAULT_URL};
the token is --token or BARTLEBY_TOKEN. Events are processed and discarded over HTTP: see docs/kafka.md.

Examples:
  $ bartleby kafka check --config bartleby.yaml           what is missing before events can flow
  $ bartleby kafka status                                 what waits, and how far intake is
  $ bartleby kafka show 4706cc1b-4c32-46d9-91b9-57b2de45dfe0
  $ bartleby kafka reassign 4706cc1b-4c32-46d9-91b9-57b2de45dfe0 wps

${EXIT_HELP}`,
    )
  for (const command of [checkCommand(terminal), ...officeCommands(terminal)]) kafka.addCommand(command)
  return kafka
}
