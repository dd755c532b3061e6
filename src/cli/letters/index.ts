/** `bartleby letters …`: find dead letters, understand them, send them back. */
import { Command } from 'commander'
import { EXIT_HELP } from '../exit.ts'
import { DEFAULT_URL } from '../queues/connection.ts'
import type { Terminal } from '../terminal.ts'
import { actCommands } from './act.ts'
import { expireCommand } from './expire.ts'
import { exportCommand } from './export.ts'
import { importCommand } from './import.ts'
import { listCommand } from './list.ts'
import { showCommand } from './show.ts'

export function lettersCommand(terminal: Terminal): Command {
  const letters = new Command('letters')
    .description('Find dead letters, understand them, send them back.')
    .addHelpText(
      'after',
      `
The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.
A letter is named by its engine and row key; its instance will do where that has one letter.

From the first look to the last letter:
  $ bartleby signatures                                      which errors are there, how many letters has each
  $ bartleby letters list 'status:pending queue:orders'      which letters are these
  $ bartleby letters show queues 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE what happened to one of them
  $ bartleby letters retry queues 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE --dry-run
  $ bartleby letters retry queues 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE --wait
  $ bartleby letters retry --query 'status:pending queue:orders' --limit 10 --wait
  $ bartleby letters retry --query 'status:pending queue:orders'

Examples:
  $ bartleby letters discard --query 'signature:1-4f2a9c' --notes 'test data'
  $ bartleby letters export --output letters.ndjson

${EXIT_HELP}`,
    )
  for (const command of [
    listCommand(terminal),
    showCommand(terminal),
    ...actCommands(terminal),
    expireCommand(terminal),
    exportCommand(terminal),
    importCommand(terminal),
  ]) {
    letters.addCommand(command)
  }
  return letters
}
