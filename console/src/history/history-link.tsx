/** Leads to history by filter. */
import { Anchor } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { HistoryAsked } from './history-filter.ts'

export function HistoryLink({
  filter,
  label,
  children,
}: {
  readonly filter: HistoryAsked
  /** For screen readers, where the text alone says too little. */
  readonly label?: string
  readonly children: ReactNode
}) {
  return (
    <Anchor
      inherit
      renderRoot={(props) => (
        <Link to="/history" search={filter} {...props} {...(label ? { 'aria-label': label } : {})} />
      )}
    >
      {children}
    </Anchor>
  )
}
