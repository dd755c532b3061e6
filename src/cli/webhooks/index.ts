/** `bartleby webhooks …`: consumers of webhooks, their dead jobs and their counts. */
import { Command } from 'commander'
import { EXIT_HELP } from '../exit.ts'
import { DEFAULT_URL } from '../queues/connection.ts'
import type { Terminal } from '../terminal.ts'
import { actCommands } from './act.ts'
import { lookCommands } from './look.ts'
import { verifyCommand } from './verify.ts'

export function webhooksCommand(terminal: Terminal): Command {
  const webhooks = new Command('webhooks')
    .description('Look after webhooks: consumers, their dead jobs and their counts.')
    .addHelpText(
      'after',
      `
The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.
\`verify\` works on the store itself, whether servers run or not.

Examples:
  $ bartleby webhooks status                                 who has dead jobs, and who is paused
  $ bartleby webhooks resume orders billing                  deliver to a paused consumer again
  $ bartleby webhooks requeue orders billing                 start all its dead jobs over
  $ bartleby webhooks runs                                   how far that is
  $ bartleby webhooks limits orders billing --at-once 5      be gentle
  $ bartleby webhooks secret orders billing                  sign its deliveries
  $ bartleby webhooks verify                                 prove that no dead job is counted wrong

${EXIT_HELP}`,
    )
  for (const command of [...lookCommands(terminal), ...actCommands(terminal), verifyCommand(terminal)])
    webhooks.addCommand(command)
  return webhooks
}
