/** `bartleby letters expire`: gives up pending letters that nobody looked at for long. */
import type { Command } from 'commander'
import { confirmCount, wholeNumber } from '../flags.ts'
import { type Desk, type OfficeFlags, officeCommand } from '../office.ts'
import { printable, type Terminal } from '../terminal.ts'
import { grouped, nowMs, secondsOf } from '../words.ts'
import { totalOf } from './which.ts'

interface ExpireFlags extends OfficeFlags {
  readonly olderThanDays: string
  readonly engine?: string
  readonly yes?: boolean
}

const DAY_MS = 86_400_000

export const expireCommand = (terminal: Terminal): Command =>
  officeCommand(
    'letters expire',
    'Give up pending letters that failed last more than so many days ago; they can be restored for as long as they are kept.',
    ['expire --older-than-days 90', 'expire --older-than-days 30 --engine hmac --yes'],
  )
    .requiredOption('--older-than-days <n>', 'at least 1')
    .option('--engine <engine>', 'only of this engine')
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      `
Expired letters are kept for \`engines.tables.retentionDays\` (90) from now on, however long ago they failed, and can be restored
until then: bartleby letters restore --query status:expired. The command says until when.`,
    )
    .work(terminal, async (desk, flags: ExpireFlags) => {
      const olderThanDays = wholeNumber('--older-than-days', flags.olderThanDays, 1)
      const engine = flags.engine === undefined ? {} : { engine: flags.engine }
      const toDate = new Date(nowMs() - olderThanDays * DAY_MS).toISOString()
      const { total, exact } = await totalOf(desk, { ...engine, status: 'Pending', toDate })
      const of = flags.engine === undefined ? '' : ` of engine '${printable(flags.engine)}'`
      const plan = `expire ${grouped(total)}${exact ? '' : ' or more'} pending letters${of}`
      if (total === 0) return desk.printLine({ expired: 0 }, 'no pending letters are that old')
      const until = await restorableUntil(desk)
      await confirmCount(`${plan}; they can be restored until ${until}`, total, flags, terminal)
      const expired = await desk.letters.expireOlder({ olderThanDays, ...engine })
      const sentence = `${grouped(expired)} letters were expired; they can be restored until ${until}`
      desk.printLine({ expired }, sentence)
    })

/** So long letters are kept that expire now. */
async function restorableUntil({ call }: Desk): Promise<string> {
  const { retentionDays } = await call<{ readonly retentionDays: number }>('GET', '/api/settings')
  return secondsOf(new Date(nowMs() + retentionDays * DAY_MS).toISOString())
}
