/** `bartleby redrive start` and `watch`: a redrive from its start to its account, watched or not, waited for or not. */
import type { Command } from 'commander'
import type { RedriveDetail, RedriveLetter } from '../../client/redrive-types.ts'
import { isOver } from '../../redrive/redrive.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import { waitTimeoutMs } from '../flags.ts'
import { type Desk, type OfficeFlags, officeCommand } from '../office.ts'
import { printable, type Terminal } from '../terminal.ts'
import { grouped } from '../words.ts'
import { follow } from './follow.ts'
import { reasonWords } from './text.ts'
import { accountOf } from './watch-frame.ts'

/** A command on redrives, on a server or on a store that the command opens itself. */
export const redriveCommand = (words: string, description: string, examples: readonly string[]) =>
  officeCommand(`redrive ${words}`, description, examples)
    .option('--store <url>', 'no server: open this store here, sqlite:PATH or postgres://…')
    .option('--config <file>', 'with --store: the configuration of its servers, in YAML')

export interface WatchFlags extends OfficeFlags {
  readonly watch?: boolean
  readonly wait?: boolean
  readonly waitTimeout?: string
}

/** Adds `--wait`. */
export const withWaitFlags = <Which extends Command>(command: Which): Which =>
  command
    .option('--wait', 'watch, and then wait until it is known what became of what was sent')
    .option('--wait-timeout <duration>', 'how long at most after its end', '1m')

/** How long outcomes are waited for; null: they are not. */
export const waitMsOf = ({ wait, waitTimeout }: WatchFlags): number | null => {
  const timeoutMs = waitTimeoutMs(waitTimeout)
  return wait ? timeoutMs : null
}

const ENDS = `
Exit codes:
  0  done, and no letter failed or returned; with --wait, all are confirmed
  1  stopped, cancelled or paused, letters failed or returned, or you left before its end
  2  wrong usage
  3  there is no such redrive`

export const startCommand = (terminal: Terminal): Command =>
  withWaitFlags(
    redriveCommand('start <id>', 'Start a plan; a server carries it out.', [
      'start d0sk3v9rkmnc73a1b2cg',
      'start d0sk3v9rkmnc73a1b2cg --watch',
      'start d0sk3v9rkmnc73a1b2cg --wait --wait-timeout 10m',
      'start d0sk3v9rkmnc73a1b2cg --store sqlite:./data/bartleby.db --watch',
    ]),
  )
    .option('--watch', 'watch it to its end')
    .addHelpText(
      'after',
      `
With --store and no server on that store, it is this command that carries it out, for as long as it watches.
${ENDS}`,
    )
    .work(
      terminal,
      async (desk, id: string, flags: WatchFlags) => {
        const waitMs = waitMsOf(flags)
        await afterStart(desk, await desk.redrives.start(id), flags.watch, waitMs)
      },
      isWatching,
    )

export const watchCommand = (terminal: Terminal): Command =>
  withWaitFlags(
    redriveCommand('watch <id>', 'Watch a redrive to its end, and tell what became of it.', [
      'watch d0sk3v9rkmnc73a1b2cg',
      'watch d0sk3v9rkmnc73a1b2cg --wait',
      'watch d0sk3v9rkmnc73a1b2cg --json | jq .counts',
    ]),
  )
    .addHelpText(
      'after',
      `
Ctrl-C ends the watching; the redrive goes on. A paused one is watched on until somebody resumes or
cancels it; where stdout is no terminal, a pause ends the watching.
${ENDS}`,
    )
    .work(
      terminal,
      async (desk, id: string, flags: WatchFlags) => {
        const waitMs = waitMsOf(flags)
        const redrive = await desk.redrives.read(id)
        if (redrive.state === 'planned' || redrive.state === 'planning') {
          throw new CommandFailure(
            EXIT.failed,
            `it was not started; start it with: bartleby redrive start ${redrive.id} --watch${desk.place}`,
          )
        }
        await seeThrough(desk, redrive, waitMs)
      },
      () => true,
    )

/** Whether the command stays until the redrive has ended. */
export const isWatching = ({ watch = false, wait = false }: WatchFlags): boolean => watch || wait

/** What is done when it was started: it is watched, or where to look is said. */
export async function afterStart(
  desk: Desk,
  started: RedriveDetail,
  watch: boolean | undefined,
  waitMs: number | null,
): Promise<void> {
  const { terminal, json, place, goesOn, print } = desk
  if (watch || waitMs !== null || isOver(started.state)) return seeThrough(desk, started, waitMs)
  print(started, ({ sentence }) => printable(sentence))
  if (!json) terminal.err(`started; ${goesOn}. Watch it with: bartleby redrive watch ${started.id}${place}`)
}

/** Watches a redrive to its end, tells what became of it, and fails unless that is what was asked for. */
export async function seeThrough(desk: Desk, started: RedriveDetail, waitMs: number | null): Promise<void> {
  const { place, goesOn, print } = desk
  const { redrive, left } = await follow(desk, started, waitMs)
  print(redrive, accountOf)
  const { id, state } = redrive
  if (left) {
    throw new CommandFailure(
      EXIT.failed,
      `left before its end; ${goesOn}. Look again with: bartleby redrive watch ${id}${place}\n  end it with: bartleby redrive cancel ${id}${place}`,
    )
  }
  const failure = await failureOf(desk, redrive, waitMs !== null)
  if (failure === null) return
  const next = state === 'paused' ? `; go on with: bartleby redrive resume ${id}${place}` : ''
  throw new CommandFailure(EXIT.failed, `${failure}${next}`)
}

const SHOWN_FAILURES = 5

/** What keeps a redrive that is over, or paused, from being a success; null when nothing does. */
async function failureOf(
  { redrives }: Desk,
  { id, state, note, counts }: RedriveDetail,
  waited: boolean,
): Promise<string | null> {
  const failures = async () =>
    (await redrives.letters(id, { outcome: 'failed', limit: SHOWN_FAILURES })).items
  const reasons = [
    ...(state === 'done'
      ? []
      : [`it ${state === 'paused' ? 'is' : 'was'} ${state}${note === null ? '' : `: ${printable(note)}`}`]),
    ...(counts.failed === 0 ? [] : [failuresText(counts.failed, await failures())]),
    ...(counts.returned === 0 ? [] : [`${grouped(counts.returned)} returned`]),
    ...(waited && state === 'done' && counts.unconfirmed > 0 ? ['not all outcomes are known yet'] : []),
  ]
  return reasons.length === 0 ? null : reasons.join('; ')
}

/** `6 failed:` and the first of them, each with its reason. */
export function failuresText(failed: number, first: readonly RedriveLetter[]): string {
  const shown = first.map(
    ({ engine, rowKey, reason, detail }) =>
      `\n  ${printable(`${engine ?? '-'} ${rowKey ?? '-'}: ${detail ?? reasonWords(reason ?? '')}`)}`,
  )
  const more = failed > first.length ? `\n  … and ${grouped(failed - first.length)} more` : ''
  return `${grouped(failed)} failed:${shown.join('')}${more}`
}
