/** Sources that the command line knows, in the order shown: those with commands, and the one that takes reports. */
import { azureCommand } from './azure/commands.ts'
import { enginesCommand } from './engines/commands.ts'
import { kafkaCommand } from './kafka/commands.ts'
import { outboxCommand } from './outbox/commands/index.ts'
import { queuesCommand } from './queues/commands/index.ts'
import type { SourceCommands } from './source-commands.ts'
import { webhooksCommand } from './webhooks/commands.ts'

export const SOURCE_COMMANDS: readonly SourceCommands[] = [
  { name: 'queues', command: queuesCommand },
  { name: 'engines', command: enginesCommand },
  { name: 'outbox', command: outboxCommand },
  { name: 'webhooks', command: webhooksCommand },
  { name: 'kafka', command: kafkaCommand },
  { name: 'azure', command: azureCommand },
  { name: 'http', takesReports: true },
]

export const SOURCE_NAMES: readonly string[] = SOURCE_COMMANDS.map(({ name }) => name)
