/** `bartleby letters retry|discard|restore`: one letter by its name, or all that match a query. */
import type { Command } from 'commander'
import { usage } from '../exit.ts'
import { type OfficeServer, withOffice } from '../office-call.ts'
import { serverCommand } from '../queues/connection.ts'
import { printable, type Terminal } from '../terminal.ts'
import { type ActFlags, targetOf, withManyFlags } from './act-flags.ts'
import { actOnMatching } from './act-on-many.ts'
import { DISCARD, RESTORE, RETRY, type SingleDeed } from './deeds.ts'
import { letterNamed } from './find.ts'
import { retryOne } from './retry-one.ts'

const LETTER = '[engine] [rowKey]'

export const actCommands = (terminal: Terminal): Command[] => [
  retry(terminal),
  discard(terminal),
  restore(terminal),
]

const MANY_HELP = `
Many letters are a redrive of the server: it plans which they are, the command says how many and asks (--yes answers), starts it and
watches it to its end. Ctrl-C leaves it running, and says how to look again or to cancel it. A rate, a few letters first, an
order, a repair: bartleby redrive plan --help. Queries are explained in: bartleby letters list --help`

const retry = (terminal: Terminal): Command =>
  withManyFlags(
    serverCommand(
      `retry ${LETTER}`,
      'Send letters back to where they came from, as they are or one of them edited.',
      [
        'retry hmac i-7-20270110T090000000000Z --dry-run          what would be sent',
        'retry hmac i-7-20270110T090000000000Z --wait             until it is confirmed, or comes back',
        'retry hmac i-7-20270110T090000000000Z --payload-file fixed.json --notes "amount was a text"',
        'retry --query \'queue:orders error:"connection reset"\' --dry-run',
        'retry --query \'queue:orders error:"connection reset"\' --limit 10 --wait',
        'retry --query \'queue:orders error:"connection reset"\' --yes',
      ],
      'letters',
    ),
  )
    .option('--notes <text>', 'why; kept in the history of each letter')
    .option('--dry-run', 'send nothing; show what would be sent, and how an edit differs')
    .option('--payload-file <file>', 'one letter: send this payload instead; - reads stdin')
    .option('--wait', 'wait until it is known what became of what was sent')
    .option('--wait-timeout <duration>', 'how long at most', '1m')
    .addHelpText(
      'after',
      `${MANY_HELP}

Exit codes:
  0  all that was to be sent is sent; with --wait, confirmed
  1  something failed, came back, or is not known yet
  2  wrong usage
  3  there is no such letter`,
    )
    .action((engine: string | undefined, rowKey: string | undefined, flags: ActFlags) =>
      withOffice(flags, terminal, async (office) => {
        const target = targetOf(RETRY, [engine, rowKey], flags)
        if (target.kind === 'one') await retryOne(office, target.letter, flags, terminal)
        else await actOnMatching(office, RETRY, target.filter, flags, terminal)
      }),
    )

const discard = (terminal: Terminal): Command =>
  withManyFlags(
    serverCommand(
      `discard ${LETTER}`,
      'End pending letters without sending them back; they can be restored.',
      [
        'discard hmac i-7-20270110T090000000000Z --notes "test data"',
        "discard --query 'signature:1-4f2a9c age:>30d' --notes 'shop closed' --yes",
      ],
      'letters',
    ),
  )
    .requiredOption('--notes <text>', 'why; kept with each letter')
    .option('--dry-run', 'many letters: change nothing; show the plan')
    .addHelpText('after', MANY_HELP)
    .action((engine: string | undefined, rowKey: string | undefined, flags: ActFlags) => {
      if (flags.notes?.trim() === '') throw usage('--notes is blank; say why the letters are discarded')
      return act(DISCARD, engine, rowKey, flags, terminal)
    })

const restore = (terminal: Terminal): Command =>
  withManyFlags(
    serverCommand(
      `restore ${LETTER}`,
      'Make resolved or expired letters pending again.',
      [
        'restore hmac i-7-20270110T090000000000Z',
        "restore --query 'status:expired engine:hmac' --notes 'still needed'",
      ],
      'letters',
    ),
  )
    .option('--notes <text>', 'why; kept in the history of each letter')
    .option('--dry-run', 'many letters: change nothing; show the plan')
    .addHelpText(
      'after',
      `
A letter that was retried can be restored until its item is being worked on: the item is taken back first.${MANY_HELP}`,
    )
    .action((engine: string | undefined, rowKey: string | undefined, flags: ActFlags) =>
      act(RESTORE, engine, rowKey, flags, terminal),
    )

const act = (
  deed: SingleDeed,
  engine: string | undefined,
  rowKey: string | undefined,
  flags: ActFlags,
  terminal: Terminal,
): Promise<void> =>
  withOffice(flags, terminal, async (office) => {
    const target = targetOf(deed, [engine, rowKey], flags)
    if (target.kind === 'many') return actOnMatching(office, deed, target.filter, flags, terminal)
    if (flags.dryRun) throw usage('--dry-run is for many letters here; see one with letters show')
    await actOnOne(office, deed, target.letter, flags, terminal)
  })

async function actOnOne(
  office: OfficeServer,
  deed: SingleDeed,
  key: { readonly engine: string; readonly rowKey: string },
  { notes, json }: ActFlags,
  terminal: Terminal,
): Promise<void> {
  const letter = await letterNamed(office, key)
  const changed = await deed.perform(office, letter, notes)
  terminal.out(
    json ? JSON.stringify(changed, null, 2) : printable(`${letter.engine} ${letter.rowKey} was ${deed.was}`),
  )
}
