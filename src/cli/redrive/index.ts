/** `bartleby redrive …`: acts on many letters, planned first, then carried out by the server under control. */
import { Command } from 'commander'
import { EXIT_HELP } from '../exit.ts'
import { DEFAULT_URL } from '../queues/connection.ts'
import type { Terminal } from '../terminal.ts'
import { controlCommands } from './control.ts'
import { listCommand } from './list.ts'
import { planCommand } from './plan.ts'
import { showCommand } from './show.ts'
import { startCommand, watchCommand } from './start.ts'

export function redriveCommands(terminal: Terminal): Command {
  const redrive = new Command('redrive')
    .description('Act on many letters at once: plan it, start it, watch it, pause, resume or cancel it.')
    .addHelpText(
      'after',
      `
A redrive is carried out by the server, and by another one when that ends: at a rate, a few letters first, and it stops when they
come back. The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.
Without a server, --store opens a store in this command, which then carries redrives out itself while it runs.

From the plan to the last letter:
  $ bartleby redrive plan 'signature:1-4f2a9c' --rate 50 --canary 10 --stop 20/100
  $ bartleby redrive start d0sk3v9rkmnc73a1b2cg --watch
  $ bartleby redrive pause d0sk3v9rkmnc73a1b2cg --reason 'the consumer is being deployed'
  $ bartleby redrive rate d0sk3v9rkmnc73a1b2cg 10
  $ bartleby redrive resume d0sk3v9rkmnc73a1b2cg
  $ bartleby redrive show d0sk3v9rkmnc73a1b2cg --letters returned

Examples:
  $ bartleby redrive list
  $ bartleby redrive plan 'queue:orders' --patch fix.json --start --watch
  $ bartleby redrive plan 'engine:hmac age:>30d' --action discard --reason 'shop closed' --start

${EXIT_HELP}`,
    )
  for (const command of [
    planCommand(terminal),
    startCommand(terminal),
    watchCommand(terminal),
    ...controlCommands(terminal),
    listCommand(terminal),
    showCommand(terminal),
  ]) {
    redrive.addCommand(command)
  }
  return redrive
}
