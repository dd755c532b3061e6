/** `bartleby outbox …`: tables of messages in the databases of applications. */
import { Command } from 'commander'
import type { Terminal } from '../terminal.ts'
import { adoptCommand } from './adopt.ts'
import { dispatchCommand } from './dispatch.ts'
import { statusCommand } from './status.ts'

export function outboxCommand(terminal: Terminal): Command {
  const outbox = new Command('outbox')
    .description('Work with outboxes: tables of messages in the databases of applications.')
    .addHelpText(
      'after',
      `
Examples:
  $ bartleby outbox adopt --url postgres://app:secret@db/shop          make the table outbox_messages, or adopt it
  $ bartleby outbox adopt --url sqlite:./shop.db --naming pascal       the same for a table OutboxMessages
  $ bartleby outbox status --url postgres://app:secret@db/shop         how many wait, fail and are dead; is it well
  $ bartleby outbox dispatch --url sqlite:./shop.db --to log --once    deliver what is due now`,
    )
  for (const command of [adoptCommand(terminal), dispatchCommand(terminal), statusCommand(terminal)])
    outbox.addCommand(command)
  return outbox
}
