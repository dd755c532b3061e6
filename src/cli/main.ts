/**
 * The command line. `run` parses the arguments, runs one command and gives the exit code; it never throws and
 * never ends the process itself, so that tests can call it.
 */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/config-error.ts'
import { VERSION } from '../observe/version.ts'
import { CommandFailure, EXIT, EXIT_HELP, reasonOf } from './exit.ts'
import { kafkaCommand } from './kafka/index.ts'
import { migrateCommand } from './migrate.ts'
import { outboxCommand } from './outbox/index.ts'
import { queuesCommand } from './queues/index.ts'
import { serveCommand } from './serve.ts'
import { processTerminal, type Terminal } from './terminal.ts'
import { tokenCommand } from './token.ts'
import { verifyCommand } from './verify.ts'
import { webhooksCommand } from './webhooks/index.ts'

/** Runs `bartleby <args>`; gives the exit code. */
export async function run(args: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  try {
    await program(terminal).parseAsync(args, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    return report(error, terminal)
  }
}

function program(terminal: Terminal): Command {
  const root = new Command('bartleby')
    .description('The dead letter office for your messages: durable queues with dead queues.')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .addHelpText(
      'after',
      `
Examples:
  $ bartleby serve                         serve queues on http://127.0.0.1:1853, stored in ./data
  $ bartleby queues create orders          make a queue
  $ bartleby queues produce orders hello   put an item in it
  $ bartleby verify                        prove that nothing is lost or counted wrong
  $ bartleby queues --help                 all that can be done with queues

${EXIT_HELP}`,
    )
  root.addCommand(serveCommand(terminal))
  root.addCommand(migrateCommand(terminal))
  root.addCommand(verifyCommand(terminal))
  root.addCommand(tokenCommand(terminal))
  root.addCommand(queuesCommand(terminal))
  root.addCommand(outboxCommand(terminal))
  root.addCommand(webhooksCommand(terminal))
  root.addCommand(kafkaCommand(terminal))
  for (const command of allOf(root)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    })
    command.showSuggestionAfterError().configureHelp({ showGlobalOptions: false })
  }
  return root
}

function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allOf)]
}

function report(error: unknown, terminal: Terminal): number {
  if (error instanceof CommanderError) {
    // Commander has printed the reason, or the help that was asked for.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  }
  terminal.err(`bartleby: ${reasonOf(error)}`)
  if (error instanceof CommandFailure) return error.exitCode
  if (error instanceof ConfigError) return EXIT.usage
  if (terminal.env.BARTLEBY_DEBUG === '1' && error instanceof Error) terminal.err(error.stack ?? '')
  return EXIT.failed
}
