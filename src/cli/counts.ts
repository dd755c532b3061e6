/** `bartleby counts`: how many letters there are, exactly. */

import { queryText } from '../client/envelope.ts'
import type { LetterCount, LetterCounts } from '../client/letter-types.ts'
import { officeCommand } from '../terminal/office.ts'
import { table } from '../terminal/table.ts'
import { grouped } from '../terminal/words.ts'

const KEYS = {
  source: 'SOURCE',
  engine: 'ENGINE',
  originalQueue: 'QUEUE',
  status: 'STATUS',
  signature: 'SIGNATURE',
} as const satisfies { readonly [Key in keyof LetterCount]?: string }

const DEFAULT_BY = 'source,engine,originalQueue,status'

export const countsCommand = officeCommand('counts', 'Count letters, exactly, at any number of them.', [
  'counts',
  'counts --by status',
  'counts --by engine,status --source engines',
  'counts --status Pending --by originalQueue --json',
])
  .option('--by <keys>', `some of ${Object.keys(KEYS).join(', ')}, separated by commas`, DEFAULT_BY)
  .option('--source <source>', 'only letters of this source')
  .option('--engine <engine>', 'only letters of this engine')
  .option('--original-queue <queue>', 'only letters from this queue')
  .option('--status <status>', 'only letters with this status')
  .option('--signature <signature>', 'only letters with this error')
  .work(async ({ call, print }, { url: _, token: __, json: ___, ...query }) => {
    const counts = await call<LetterCounts>('GET', `/api/counts${queryText(query)}`)
    print(counts, () => countsText(counts, query.by))
  })

function countsText({ items, totals }: LetterCounts, by: string): string {
  const keys = Object.entries(KEYS).filter(([key]) => by.split(',').includes(key))
  const rows = items
    .toSorted((a, b) => b.count - a.count)
    .map((item) => [...keys.map(([key]) => item[key as keyof typeof KEYS] ?? '-'), item.count])
  const sums = Object.entries(totals).map(([status, count]) => `${grouped(count)} ${status.toLowerCase()}`)
  const total = `in all ${sums.join(', ')}`
  return rows.length === 0
    ? total
    : `${table([...keys.map(([, heading]) => heading), 'LETTERS'], rows)}\n${total}`
}
