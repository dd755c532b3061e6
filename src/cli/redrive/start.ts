/** `bartleby redrive start` and `watch`. */
import type { Command } from 'commander'
import type { RedriveDetail } from '../../client/redrive-types.ts'
import { isOver } from '../../redrive/redrive.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import { printable, type Terminal } from '../terminal.ts'
import { seeThrough } from './carry-out.ts'
import {
  type Desk,
  type RedriveFlags,
  redriveCommand,
  type WatchFlags,
  waitMsOf,
  withDesk,
  withWaitFlags,
} from './connection.ts'

interface Flags extends RedriveFlags, WatchFlags {
  readonly watch?: boolean
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
    .action((id: string, flags: Flags) =>
      withDesk(
        flags,
        terminal,
        async (desk) => {
          const manner = { watch: flags.watch ?? false, waitMs: waitMsOf(flags), json: flags.json ?? false }
          await afterStart(desk, await desk.office.redrives.start(id), manner, terminal)
        },
        { carriesOut: isWatching(flags) },
      ),
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
    .action((id: string, flags: Flags) =>
      withDesk(
        flags,
        terminal,
        async ({ office, place, goesOn }) => {
          const waitMs = waitMsOf(flags)
          const redrive = await office.redrives.read(id)
          if (redrive.state === 'planned' || redrive.state === 'planning') {
            throw new CommandFailure(
              EXIT.failed,
              `it was not started; start it with: bartleby redrive start ${redrive.id} --watch${place}`,
            )
          }
          await seeThrough(office, redrive, { waitMs, json: flags.json ?? false, place, goesOn }, terminal)
        },
        { carriesOut: true },
      ),
    )

/** Whether the command stays until the redrive has ended. */
export const isWatching = ({ watch, wait }: { readonly watch?: boolean; readonly wait?: boolean }): boolean =>
  (watch ?? false) || (wait ?? false)

/** What is done when it was started: it is watched, or where to look is said. */
export async function afterStart(
  { office, place, goesOn }: Desk,
  started: RedriveDetail,
  {
    watch,
    waitMs,
    json,
  }: { readonly watch: boolean; readonly waitMs: number | null; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  if (watch || waitMs !== null || isOver(started.state))
    return seeThrough(office, started, { waitMs, json, place, goesOn }, terminal)
  terminal.out(json ? JSON.stringify(started, null, 2) : printable(started.sentence))
  if (!json) terminal.err(`started; ${goesOn}. Watch it with: bartleby redrive watch ${started.id}${place}`)
}
