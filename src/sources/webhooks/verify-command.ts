/** `bartleby webhooks verify`: compares the counts of webhooks with what counting gives, and repairs them. */
import { Command } from 'commander'
import { EXIT, failed } from '../../terminal/exit.ts'
import { type StoreFlags, UNSUPPORTED_STORE } from '../../terminal/flags.ts'
import { showProgress } from '../../terminal/progress.ts'
import { table } from '../../terminal/table.ts'
import { grouped } from '../../terminal/words.ts'
import type { SourceKit } from '../source-commands.ts'
import type { WebhookCheckReport } from './check.ts'

interface Flags extends StoreFlags {
  readonly json?: boolean
  readonly repair?: boolean
}

export const verifyCommand = (kit: SourceKit): Command =>
  new Command('verify')
    .description('Check that the counts of dead jobs, and all others of webhooks, are what counting gives.')
    .option('--store <url>', 'sqlite:PATH or postgres://…; sqlite:./data/bartleby.db unless configured')
    .option('--unsupported-store', UNSUPPORTED_STORE)
    .option('--config <file>', 'configuration in YAML')
    .option('--repair', 'put wrong counts right; servers may go on meanwhile')
    .option('--json', 'print the report as JSON, without progress')
    .addHelpText(
      'after',
      `
It works on a live store: it looks at one moment of it, and no server has to wait. All other promises of the
store are checked by \`bartleby verify\`.

Examples:
  $ bartleby webhooks verify
  $ bartleby webhooks verify --store postgres://app:secret@db/bartleby --repair
  $ bartleby webhooks verify --json | jq .mismatches

Exit codes:
  0  all counts are right, or were put right
  1  some are wrong; they are printed
  2  it could not run: wrong usage or configuration, or the store is not there, cannot be reached, is of
     another version, or on no PostgreSQL`,
    )
    .action(({ json, repair, ...flags }: Flags) =>
      verify(flags, { json: json === true, repair: repair === true }, kit),
    )

async function verify(
  flags: StoreFlags,
  { json, repair }: { readonly json: boolean; readonly repair: boolean },
  { terminal, onStore }: SourceKit,
): Promise<void> {
  const { found, left } = await onStore(flags, EXIT.usage, async (db) => {
    const { checkWebhooks } = await import('./check.ts')
    const { SystemClock } = await import('../../core/system-clock.ts')
    const clock = new SystemClock()
    const progress = json ? null : showProgress(terminal)
    let done = 0
    const onProgress = (rows: number) => {
      done += rows
      progress?.show('counting', done, done)
    }
    try {
      const found = await checkWebhooks(db, { clock, repair, onProgress })
      if (!found.repaired) return { found, left: found }
      // Whether that was all: what is wrong with the jobs themselves no count can repair.
      return { found, left: await checkWebhooks(db, { clock, onProgress }) }
    } finally {
      progress?.end()
    }
  })
  terminal.out(json ? JSON.stringify(found, null, 2) : textOf(found))
  const wrong = left.mismatches.length + left.tallies.length
  if (wrong > 0) throw failed(`${wrong} of the counts of webhooks are wrong`)
}

function textOf({ checked, mismatches, tallies, repaired }: WebhookCheckReport): string {
  const wrong = [
    ...mismatches.map((each) => ({ ...each, tally: 'dead' })),
    ...tallies.map(({ consumerId, ...each }) => ({ ...each, consumerId: consumerId ?? '-' })),
  ]
  const consumers = `${grouped(checked)} consumer${checked === 1 ? '' : 's'}`
  if (wrong.length === 0) {
    const also = repaired ? '; counts of single errors were put right' : ''
    return `the counts of ${consumers} are what counting gives${also}`
  }
  const rows = wrong.map((each) => [each.channelId, each.consumerId, each.tally, each.counted, each.actual])
  return [
    table(['CHANNEL', 'CONSUMER', 'COUNT', 'COUNTED', 'ACTUAL'], rows),
    ...(repaired ? ['', 'these counts were put right'] : []),
  ].join('\n')
}
