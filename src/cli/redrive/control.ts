/** `bartleby redrive pause|resume|cancel|rate`: what can be told to a redrive that was started. */
import type { Command } from 'commander'
import type { RedriveDetail } from '../../client/redrive-types.ts'
import type { Terminal } from '../terminal.ts'
import { type RedriveFlags, redriveCommand, withDesk } from './connection.ts'
import { rateOf } from './plan-flags.ts'
import { accountOf } from './watch-frame.ts'

interface Flags extends RedriveFlags {
  readonly reason?: string
}

const ID = 'd0sk3v9rkmnc73a1b2cg'

export const controlCommands = (terminal: Terminal): Command[] => [
  control(terminal, 'pause', 'Pause a redrive: no further letter is sent until it is resumed.', [
    `pause ${ID}`,
    `pause ${ID} --reason 'the consumer is being deployed'`,
  ]).option('--reason <text>', 'why; shown to all who look at it'),
  control(terminal, 'resume', 'Go on with a redrive that is paused.', [`resume ${ID}`]),
  control(terminal, 'cancel', 'End a redrive, or a plan: what was not sent stays as it is.', [
    `cancel ${ID}`,
    `cancel ${ID} --reason 'wrong queue'`,
  ]).option('--reason <text>', 'why; shown to all who look at it'),
  rate(terminal),
]

const control = (
  terminal: Terminal,
  name: 'pause' | 'resume' | 'cancel',
  description: string,
  examples: readonly string[],
): Command =>
  redriveCommand(`${name} <id>`, description, examples).action((id: string, flags: Flags) =>
    withDesk(flags, terminal, async ({ office: { redrives } }) => {
      const changed = name === 'resume' ? redrives.resume(id) : redrives[name](id, flags.reason)
      tell(await changed, flags, terminal)
    }),
  )

const rate = (terminal: Terminal): Command =>
  redriveCommand(
    'rate <id> <rate>',
    'Change how many letters a second a redrive sends to each destination.',
    [`rate ${ID} 100`, `rate ${ID} 0.5`, `rate ${ID} none      as fast as it goes`],
  ).action((id: string, text: string, flags: Flags) =>
    withDesk(flags, terminal, async ({ office }) => {
      const perSecond = text === 'none' ? null : rateOf('the rate', text)
      tell(await office.redrives.setRate(id, perSecond), flags, terminal)
    }),
  )

function tell(redrive: RedriveDetail, { json }: Flags, terminal: Terminal): void {
  terminal.out(json ? JSON.stringify(redrive, null, 2) : accountOf(redrive))
}
