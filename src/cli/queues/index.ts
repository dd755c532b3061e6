/** `bartleby queues …`: everything that can be done with queues of a running server. */
import { commandGroup, SERVER_HELP } from '../office.ts'
import {
  clearCommand,
  completeCommand,
  leaseCommand,
  peekCommand,
  produceCommand,
  retryCommand,
  statsCommand,
} from './items.ts'
import { createCommand, deleteCommand, infoCommand, listCommand, updateCommand } from './settings.ts'

export const queuesCommand = commandGroup(
  'queues',
  'Work with the queues of a running server.',
  `${SERVER_HELP}
Durations are written like 90s, 10m or 1h30m.

Examples:
  $ bartleby queues create orders --max-attempts 3
  $ bartleby queues produce orders '{"order":1}'
  $ bartleby queues lease orders
  $ bartleby queues list                           what lies in each queue, and what died there
  $ bartleby queues list --settings                how each is set up
  $ bartleby letters list 'source:queues queue:orders'`,
  [
    listCommand,
    infoCommand,
    createCommand,
    updateCommand,
    deleteCommand,
    statsCommand,
    clearCommand,
    peekCommand,
    produceCommand,
    leaseCommand,
    completeCommand,
    retryCommand,
  ],
)
