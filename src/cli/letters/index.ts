/** `bartleby letters …`: find dead letters, understand them, send them back. */
import { commandGroup } from '../../terminal/command.ts'
import { SERVER_HELP } from '../../terminal/office.ts'
import { discardCommand, expireCommand, restoreCommand, retryCommand } from './act.ts'
import { exportCommand, importCommand } from './files.ts'
import { listCommand } from './list.ts'
import { showCommand } from './show.ts'

export const lettersCommand = commandGroup(
  'letters',
  'Find dead letters, understand them, send them back.',
  `${SERVER_HELP}
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
  $ bartleby letters export --output letters.ndjson`,
  [
    listCommand,
    showCommand,
    retryCommand,
    discardCommand,
    restoreCommand,
    expireCommand,
    exportCommand,
    importCommand,
  ],
)
