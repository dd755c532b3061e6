/** Whether a redrive ended well, and if not, why. */

import type { RedriveDetail, RedriveLetter } from '../../client/redrive-types.ts'
import type { OfficeServer } from '../office-call.ts'
import { grouped } from '../progress.ts'
import { printable } from '../terminal.ts'
import { listAll } from '../walk-list.ts'
import { redrivePath } from './paths.ts'
import { reasonWords } from './reason-words.ts'

const SHOWN_FAILURES = 5

/** What keeps a redrive that is over, or paused, from being a success; null when nothing does. */
export async function failureOf(
  office: OfficeServer,
  redrive: RedriveDetail,
  { waited }: { readonly waited: boolean },
): Promise<string | null> {
  const { id, state, note, counts } = redrive
  const reasons = [
    ...(state === 'done'
      ? []
      : [`it ${state === 'paused' ? 'is' : 'was'} ${state}${note === null ? '' : `: ${printable(note)}`}`]),
    ...(counts.failed === 0 ? [] : [failuresText(counts.failed, await firstFailures(office, id))]),
    ...(counts.returned === 0 ? [] : [`${grouped(counts.returned)} returned`]),
    ...(waited && state === 'done' && counts.unconfirmed > 0 ? ['not all outcomes are known yet'] : []),
  ]
  return reasons.length === 0 ? null : reasons.join('; ')
}

const firstFailures = ({ call }: OfficeServer, id: string): Promise<readonly RedriveLetter[]> =>
  listAll(call, redrivePath(id, 'letters'), { outcome: 'failed' }, SHOWN_FAILURES)

/** `6 failed:` and the first of them, each with its reason. */
export function failuresText(failed: number, first: readonly RedriveLetter[]): string {
  const shown = first.map(
    ({ engine, rowKey, reason, detail }) =>
      `\n  ${printable(`${engine ?? '-'} ${rowKey ?? '-'}: ${detail ?? reasonWords(reason ?? '')}`)}`,
  )
  const more = failed > first.length ? `\n  … and ${grouped(failed - first.length)} more` : ''
  return `${grouped(failed)} failed:${shown.join('')}${more}`
}
