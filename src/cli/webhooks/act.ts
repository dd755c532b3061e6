/** `bartleby webhooks resume|limits|secret|requeue|purge`: what is done with one consumer. */
import type { Command } from 'commander'
import { CommandFailure, EXIT } from '../exit.ts'
import { withServer } from '../office-call.ts'
import { grouped } from '../progress.ts'
import { type ConnectionFlags, confirm, wholeNumber } from '../queues/connection.ts'
import { printable, type Terminal } from '../terminal.ts'
import { consumerPath, webhookCommand } from './connection.ts'

const OF = '<channel> <consumer>'

export const actCommands = (terminal: Terminal): Command[] => [
  resume(terminal),
  limits(terminal),
  secret(terminal),
  requeue(terminal),
  purge(terminal),
]

const named = (channel: string, consumer: string): string =>
  printable(`consumer '${consumer}' of channel '${channel}'`)

const resume = (terminal: Terminal): Command =>
  webhookCommand(`resume ${OF}`, 'End the pause of a consumer: its jobs are delivered again at once.', [
    'resume orders billing',
  ]).action((channel: string, consumer: string, flags: ConnectionFlags) =>
    withServer(flags, terminal, async (call) => {
      const answer = await call<{ resumed: boolean }>('POST', consumerPath(channel, consumer, 'resume'))
      const text = `${named(channel, consumer)} ${answer.resumed ? 'is delivered to again' : 'was not paused'}`
      terminal.out(flags.json ? JSON.stringify(answer) : text)
    }),
  )

interface LimitFlags extends ConnectionFlags {
  readonly atOnce?: string
  readonly perSecond?: string
}

const limits = (terminal: Terminal): Command =>
  webhookCommand(
    `limits ${OF}`,
    'Limit the attempts that each server makes at a consumer; a limit that is not given is the default of the server again.',
    ['limits orders billing --at-once 5', 'limits orders billing --per-second 0.5', 'limits orders billing'],
  )
    .option('--at-once <number>', 'attempts of a server at the same time')
    .option('--per-second <number>', 'attempts of a server per second')
    .action((channel: string, consumer: string, flags: LimitFlags) =>
      withServer(flags, terminal, async (call) => {
        const wanted = {
          mostAtOnce: wholeNumber('--at-once', flags.atOnce, 1) ?? null,
          mostPerSecond: rateOf(flags.perSecond),
        }
        await call('PUT', consumerPath(channel, consumer, 'limits'), wanted)
        const shown = (limit: number | null) => (limit === null ? 'as many as the server allows' : limit)
        terminal.out(
          flags.json
            ? JSON.stringify(wanted)
            : `${named(channel, consumer)}: of each server at once ${shown(wanted.mostAtOnce)}, per second ${shown(wanted.mostPerSecond)}`,
        )
      }),
    )

function rateOf(text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text) || Number(text) === 0)
    throw new CommandFailure(EXIT.usage, `--per-second is '${text}'; expected a number above 0`)
  return Number(text)
}

interface SecretFlags extends ConnectionFlags {
  readonly dropPrevious?: boolean
  readonly off?: boolean
}

const secret = (terminal: Terminal): Command =>
  webhookCommand(
    `secret ${OF}`,
    'Make a new signing secret and print it, this once; the one before it signs too until it is dropped.',
    ['secret orders billing', 'secret orders billing --drop-previous', 'secret orders billing --off'],
  )
    .option('--drop-previous', 'make none; from now on only the newest secret signs')
    .option('--off', 'make none; from now on deliveries are not signed')
    .action((channel: string, consumer: string, flags: SecretFlags) =>
      withServer(flags, terminal, async (call) => {
        if (flags.off && flags.dropPrevious)
          throw new CommandFailure(EXIT.usage, 'give one of --drop-previous and --off')
        if (flags.off || flags.dropPrevious) {
          const what = flags.off ? 'secrets' : 'secrets/previous'
          await call('DELETE', consumerPath(channel, consumer, what))
          const text = flags.off ? 'are not signed any more' : 'are signed with the newest secret only'
          terminal.out(flags.json ? '{}' : `deliveries to ${named(channel, consumer)} ${text}`)
          return
        }
        const made = await call<{ secret: string }>('POST', consumerPath(channel, consumer, 'secrets'))
        // The secret alone, so that it can be piped to where it is kept.
        terminal.out(flags.json ? JSON.stringify(made) : made.secret)
      }),
    )

const requeue = (terminal: Terminal): Command =>
  webhookCommand(
    `requeue ${OF}`,
    'Requeue all dead jobs of a consumer. Of many it goes on in the background: see `runs`.',
    ['requeue orders billing'],
  ).action((channel: string, consumer: string, flags: ConnectionFlags) =>
    withServer(flags, terminal, async (call) => {
      await call('POST', consumerPath(channel, consumer, 'requeue'))
      terminal.out(flags.json ? '{}' : `the dead jobs of ${named(channel, consumer)} are being requeued`)
    }),
  )

const purge = (terminal: Terminal): Command =>
  webhookCommand(
    `purge ${OF}`,
    'Erase all dead jobs of a consumer whose attempts are used up, with their letters.',
    ['purge orders billing', 'purge orders billing --yes --json'],
  )
    .option('--yes', 'do not ask')
    .action((channel: string, consumer: string, flags: ConnectionFlags & { readonly yes?: boolean }) =>
      withServer(flags, terminal, async (call) => {
        const deed = `erase all dead jobs of ${named(channel, consumer)} for good`
        await confirm(deed, consumer, flags.yes, terminal, 'consumer')
        const answer = await call<{ purged: number }>('POST', consumerPath(channel, consumer, 'purge'))
        terminal.out(flags.json ? JSON.stringify(answer) : `${grouped(answer.purged)} dead jobs were erased`)
      }),
    )
