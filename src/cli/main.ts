/** The command line. `run` never throws and never ends the process, so that tests can call it. */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../core/settings/config-error.ts'
import { variableOf } from '../core/settings/environment.ts'
import { VERSION } from '../core/version.ts'
import { SOURCE_COMMANDS } from '../sources/commands.ts'
import { CommandFailure, EXIT, EXIT_HELP, reasonOf } from '../terminal/exit.ts'
import { processTerminal, type Terminal } from '../terminal/terminal.ts'
import { configCommand } from './config.ts'
import { countsCommand } from './counts.ts'
import { historyCommand } from './history.ts'
import { lettersCommand } from './letters/index.ts'
import { migrateCommand } from './migrate.ts'
import { redriveCommands } from './redrive/index.ts'
import { runsCommand } from './runs.ts'
import { serveCommand } from './serve.ts'
import { signaturesCommand } from './signatures.ts'
import { kitOf } from './store.ts'
import { tokenCommand } from './token.ts'
import { topCommand } from './top/index.ts'
import { verifyCommand } from './verify.ts'

/** Gives the exit code. */
export async function run(args: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  try {
    await program(terminal).parseAsync(args, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    return report(error, terminal)
  }
}

function program(terminal: Terminal): Command {
  const kit = kitOf(terminal)
  const root = new Command('bartleby')
    .description(
      'The dead letter office for your messages: what failed is captured once, counted exactly, understood, sent back.',
    )
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .addHelpText(
      'after',
      `
Begin:
  $ bartleby serve --demo                              an invented shop, to look around
  $ bartleby serve                                     a server on http://127.0.0.1:1853, stored in ./data
  $ bartleby queues create orders --max-attempts 3     a queue
  $ bartleby queues produce orders '{"order":1}'       an item in it

When something died:
  $ bartleby top                                       what is going on
  $ bartleby signatures                                one cause or ten
  $ bartleby letters list 'status:pending age:<1h'     which letters
  $ bartleby letters show ENGINE KEY                   what happened to one
  $ bartleby letters retry ENGINE KEY --dry-run        what would be sent
  $ bartleby redrive plan 'signature:…' --canary 10    what sending all of them back would do
  $ bartleby redrive start ID --watch                  do it, and see it through

Examples:
  $ bartleby letters --help      all that can be done with letters
  $ bartleby verify              prove that nothing is lost or counted wrong

Commands that talk to a server find it by --url or BARTLEBY_URL, and send the token of --token or BARTLEBY_TOKEN.
${EXIT_HELP}`,
    )
  const groups = {
    'Server:': [serveCommand, configCommand, migrateCommand, verifyCommand, tokenCommand],
    'Letters:': [
      topCommand,
      lettersCommand,
      redriveCommands,
      runsCommand,
      signaturesCommand,
      countsCommand,
      historyCommand,
    ],
    'Sources:': SOURCE_COMMANDS.flatMap(({ command }) => command ?? []),
  }
  for (const [heading, commands] of Object.entries(groups)) {
    for (const make of commands) root.addCommand(make(kit).helpGroup(heading))
  }
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
    // Commander has printed the reason or the help.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  }
  terminal.err(`bartleby: ${reasonOf(error)}`)
  if (error instanceof CommandFailure) return error.exitCode
  if (error instanceof ConfigError) return EXIT.usage
  if (variableOf(terminal.env, 'BARTLEBY_DEBUG') === '1' && error instanceof Error)
    terminal.err(error.stack ?? '')
  return EXIT.failed
}
