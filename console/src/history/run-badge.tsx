/** How a run or an act ended, in a word and a colour. */
import { Badge } from '@mantine/core'
import type { HistoryStatus } from '../api/types.ts'

export function RunBadge({ status }: { readonly status: HistoryStatus }) {
  return (
    <Badge variant="light" size="sm" className="badge" color={status === 'Failed' ? 'red' : 'teal'}>
      {status}
    </Badge>
  )
}
