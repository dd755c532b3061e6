/** `bartleby queues …`: everything that can be done with queues of a running server. */
import { Command } from 'commander'
import { EXIT_HELP } from '../exit.ts'
import type { Terminal } from '../terminal.ts'
import { DEFAULT_URL } from './connection.ts'
import { contentsCommands } from './contents.ts'
import { itemCommands } from './items.ts'
import { settingsCommands } from './settings.ts'

export function queuesCommand(terminal: Terminal): Command {
  const queues = new Command('queues').description('Work with the queues of a running server.').addHelpText(
    'after',
    `
The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.
Durations are written like 90s, 10m or 1h30m.

Examples:
  $ bartleby queues create orders --max-attempts 3
  $ bartleby queues produce orders '{"order":1}'
  $ bartleby queues lease orders
  $ bartleby queues list                           what lies in each queue, and what died there
  $ bartleby queues list --settings                how each is set up
  $ bartleby letters list 'source:queues queue:orders'

${EXIT_HELP}`,
  )
  for (const command of [
    ...settingsCommands(terminal),
    ...contentsCommands(terminal),
    ...itemCommands(terminal),
  ]) {
    queues.addCommand(command)
  }
  return queues
}
