/** `bartleby webhooks resume|limits|secret|requeue|purge`: what is done with one consumer. */
import type { Command } from 'commander'
import { pathTo } from '../../client/envelope.ts'
import { usage } from '../exit.ts'
import { confirmName, wholeNumber } from '../flags.ts'
import { type OfficeFlags, officeCommand } from '../office.ts'
import { printable, type Terminal } from '../terminal.ts'
import { grouped } from '../words.ts'

const OF = '<channel> <consumer>'

/** The path of what can be done with one consumer. */
const consumerPath = (channel: string, consumer: string, act: string): string =>
  `${pathTo('/api/webhooks/channels', channel)}/${pathTo('consumers', consumer)}/${act}`

const named = (channel: string, consumer: string): string =>
  printable(`consumer '${consumer}' of channel '${channel}'`)

export const resumeCommand = (terminal: Terminal): Command =>
  officeCommand(
    `webhooks resume ${OF}`,
    'End the pause of a consumer: its jobs are delivered again at once.',
    ['resume orders billing'],
  ).work(terminal, async ({ call }, channel: string, consumer: string, flags: OfficeFlags) => {
    const answer = await call<{ resumed: boolean }>('POST', consumerPath(channel, consumer, 'resume'))
    const text = `${named(channel, consumer)} ${answer.resumed ? 'is delivered to again' : 'was not paused'}`
    terminal.out(flags.json ? JSON.stringify(answer) : text)
  })

interface LimitFlags extends OfficeFlags {
  readonly atOnce?: string
  readonly perSecond?: string
}

export const limitsCommand = (terminal: Terminal): Command =>
  officeCommand(
    `webhooks limits ${OF}`,
    'Limit the attempts that each server makes at a consumer; a limit that is not given is the default of the server again.',
    ['limits orders billing --at-once 5', 'limits orders billing --per-second 0.5', 'limits orders billing'],
  )
    .option('--at-once <number>', 'attempts of a server at the same time')
    .option('--per-second <number>', 'attempts of a server per second')
    .work(terminal, async ({ call }, channel: string, consumer: string, flags: LimitFlags) => {
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
    })

function rateOf(text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text) || Number(text) === 0)
    throw usage(`--per-second is '${text}'; expected a number above 0`)
  return Number(text)
}

interface SecretFlags extends OfficeFlags {
  readonly dropPrevious?: boolean
  readonly off?: boolean
}

export const secretCommand = (terminal: Terminal): Command =>
  officeCommand(
    `webhooks secret ${OF}`,
    'Make a new signing secret and print it, this once; the one before it signs too until it is dropped.',
    ['secret orders billing', 'secret orders billing --drop-previous', 'secret orders billing --off'],
  )
    .option('--drop-previous', 'make none; from now on only the newest secret signs')
    .option('--off', 'make none; from now on deliveries are not signed')
    .work(terminal, async ({ call }, channel: string, consumer: string, flags: SecretFlags) => {
      if (flags.off && flags.dropPrevious) throw usage('give one of --drop-previous and --off')
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
    })

export const requeueCommand = (terminal: Terminal): Command =>
  officeCommand(
    `webhooks requeue ${OF}`,
    'Requeue all dead jobs of a consumer. Of many it goes on in the background: see `runs`.',
    ['requeue orders billing'],
  ).work(terminal, async ({ call }, channel: string, consumer: string, flags: OfficeFlags) => {
    await call('POST', consumerPath(channel, consumer, 'requeue'))
    terminal.out(flags.json ? '{}' : `the dead jobs of ${named(channel, consumer)} are being requeued`)
  })

export const purgeCommand = (terminal: Terminal): Command =>
  officeCommand(
    `webhooks purge ${OF}`,
    'Erase all dead jobs of a consumer whose attempts are used up, with their letters.',
    ['purge orders billing', 'purge orders billing --yes --json'],
  )
    .option('--yes', 'do not ask')
    .work(
      terminal,
      async (
        { call },
        channel: string,
        consumer: string,
        flags: OfficeFlags & { readonly yes?: boolean },
      ) => {
        const deed = `erase all dead jobs of ${named(channel, consumer)} for good`
        await confirmName(deed, { kind: 'consumer', name: consumer }, flags.yes, terminal)
        const answer = await call<{ purged: number }>('POST', consumerPath(channel, consumer, 'purge'))
        terminal.out(flags.json ? JSON.stringify(answer) : `${grouped(answer.purged)} dead jobs were erased`)
      },
    )
