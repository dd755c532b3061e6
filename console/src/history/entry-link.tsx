/** Entries by name, as the address has them. */
import { Anchor } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { HistoryItem } from '../api/types.ts'
import type { HistoryAsked } from './history-filter.ts'

type Named = Pick<HistoryItem, 'engine' | 'rowKey'>

export const entryName = ({ engine, rowKey }: Named): string => `${engine}/${rowKey}`

/** What a name stands for; names of engines have no slash. */
export function entryOf(name: string): Named {
  const end = name.indexOf('/')
  return end < 0 ? { engine: name, rowKey: '' } : { engine: name.slice(0, end), rowKey: name.slice(end + 1) }
}

/** Opens an entry beside the list that it stands in. */
export function EntryLink({
  filter,
  entry,
  children,
}: {
  readonly filter: HistoryAsked
  readonly entry: Named
  readonly children: ReactNode
}) {
  return (
    <Anchor
      inherit
      renderRoot={(props) => (
        <Link to="/history" search={{ ...filter, entry: entryName(entry) }} {...props} />
      )}
    >
      {children}
    </Anchor>
  )
}
