/** Links between screens: to letters by filter, to one letter, to a signature. Every number leads to the letters behind it. */
import { Anchor } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { formatLetterQuery } from '../../../src/core/letter-query.ts'
import type { LetterFilter, LetterKey } from '../api/types.ts'
import { grouped } from '../time/format.ts'

/** The text of the query bar for a filter. */
export const queryOf = (filter: LetterFilter): string => formatLetterQuery(filter, Date.now())

/** Leads to the letters that match. */
export function LettersLink({
  filter,
  label,
  children,
}: {
  readonly filter: LetterFilter
  /** For screen readers, where the text alone says too little. */
  readonly label?: string
  readonly children: ReactNode
}) {
  return (
    <QueryLink query={queryOf(filter)} {...(label ? { label } : {})}>
      {children}
    </QueryLink>
  )
}

/** Leads to the letters of a query as it is typed: for terms that are no filter, such as `age:<1h`. */
export function QueryLink({
  query,
  label,
  children,
}: {
  readonly query: string
  readonly label?: string
  readonly children: ReactNode
}) {
  return (
    <Anchor
      inherit
      className="ink-link"
      renderRoot={(props) => (
        <Link to="/letters" search={{ query }} {...props} {...(label ? { 'aria-label': label } : {})} />
      )}
    >
      {children}
    </Anchor>
  )
}

/** A count that leads to its letters. */
export function Count({
  of,
  filter,
  label,
}: {
  readonly of: number
  readonly filter: LetterFilter
  readonly label: string
}) {
  return (
    <LettersLink filter={filter} label={`${grouped(of)} ${label}`}>
      {grouped(of)}
    </LettersLink>
  )
}

/** Leads to one letter. */
export function LetterLink({
  letter,
  children,
}: {
  readonly letter: LetterKey
  readonly children: ReactNode
}) {
  return (
    <Anchor
      inherit
      className="ink-link"
      renderRoot={(props) => (
        <Link
          to="/letters/$engine/$rowKey"
          params={{ engine: letter.engine, rowKey: letter.rowKey }}
          {...props}
        />
      )}
    >
      {children}
    </Anchor>
  )
}

/** Leads to the page of a signature. */
export function SignatureLink({
  signature,
  children,
}: {
  readonly signature: string
  readonly children: ReactNode
}) {
  return (
    <Anchor
      inherit
      className="ink-link"
      renderRoot={(props) => <Link to="/signatures/$signature" params={{ signature }} {...props} />}
    >
      {children}
    </Anchor>
  )
}
